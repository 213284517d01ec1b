import { printable } from "./text";

type Child = Node | string | null | undefined | false;
type Properties = Record<string, string | number | boolean | EventListener | null | undefined>;

const vector = new Set(["svg", "path", "g", "defs", "pattern", "rect", "line", "title"]);

/**
 * el is the only way to an element. A string becomes text and never markup, and shows as what it is; a function listens; anything else
 * is an attribute.
 */
export function el(name: string, properties: Properties = {}, ...children: Child[]): HTMLElement {
  const element = vector.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);

  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value === true ? "" : printable(String(value)));
  }

  fill(element, ...children);

  return element as HTMLElement;
}

/** fill puts children in place of those that are there. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren(
    ...children.flatMap((child) => {
      if (child === null || child === undefined || child === false) return [];

      return [typeof child === "string" ? document.createTextNode(printable(child)) : child];
    }),
  );
}

/** place puts an element where a layout wants it. */
export function place(element: HTMLElement, box: { left?: number; top?: number; width?: number; height?: number }): HTMLElement {
  for (const [key, value] of Object.entries(box)) element.style.setProperty(key, `${value}px`);

  return element;
}

/** the is an element of the page itself. */
export function the<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no ${id}`);

  return found as T;
}
