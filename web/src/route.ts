// Where one is in the page stands in the address, after the #, which no browser sends to anybody: each view has a link.

export interface Route {
  view: "map" | "matrix" | "wrong" | "changes" | "plan";
  /** panel is what is open beside the view. */
  panel?: "cell" | "namespace" | "operator" | "scope" | "block" | "who" | "rights" | "person" | undefined;
  operator?: string | undefined;
  namespace?: string | undefined;
  scope?: string | undefined;
  verb?: string | undefined;
  resource?: string | undefined;
  /** name is a part of what a person is called. */
  name?: string | undefined;
  /** filter limits the matrix; only is "wrong" or nothing; fold is "yes" or nothing. */
  filter?: string | undefined;
  only?: string | undefined;
  fold?: string | undefined;
  theme?: string | undefined;
}

const views = ["map", "matrix", "wrong", "changes", "plan"];
const keys = ["panel", "operator", "namespace", "scope", "verb", "resource", "name", "filter", "only", "fold", "theme"] as const;

/** route is where the address leads. What it does not know is left out. */
export function route(): Route {
  const asked = new URLSearchParams(location.hash.slice(1));
  const view = asked.get("view") ?? "map";
  const out: Record<string, string> = { view: views.includes(view) ? view : "map" };

  for (const key of keys) {
    const value = asked.get(key);
    if (value !== null) out[key] = value;
  }

  return out as unknown as Route;
}

/** link is the address of a route. */
export function link(to: Route): string {
  const asked = new URLSearchParams({ view: to.view });

  for (const key of keys) {
    const value = to[key];
    if (value !== undefined && value !== "" || key === "namespace" && value === "" && to.panel === "cell") asked.set(key, value ?? "");
  }

  return "#" + asked.toString();
}

/** go leads to a route; what is not named stays as it is. */
export function go(change: Partial<Route>): void {
  const next = link({ ...route(), ...change });
  if (next !== location.hash) location.hash = next;
}

/** beside is the link to a panel beside the view that is open. */
export function beside(panel: Partial<Route>): string {
  const { view, filter, only, fold, theme } = route();

  return link({ view, filter, only, fold, theme, ...panel });
}
