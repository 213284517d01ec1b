// What is wrong, and what changed: the same as the map shows, in words.

import { el } from "./dom";
import { Is, Model, placeName } from "./model";
import type { Change } from "./model";
import { clock } from "./panel";
import { beside, link, route } from "./route";
import { count, short } from "./text";

/** wrong lists scopes that are not ready, and namespaces that are not fully served. */
export function wrong(model: Model): HTMLElement {
  const { chart } = model;
  const scopes = chart.scopes.filter((s) => s.ready !== "True" && !(s.name.startsWith("ScopeTemplate ") && s.reason === "NoStatus"));
  const blocks = chart.blocks.map((b, at) => ({ b, at })).filter(({ at }) => model.isWrong(at));

  if (scopes.length + blocks.length + chart.notRead.length === 0) {
    return el("div", { class: "list" }, el("p", { class: "empty" }, el("span", { class: "sign served", "aria-hidden": "true" }, "✓ "), "Nothing is wrong."));
  }

  return el(
    "div",
    { class: "list" },
    el("h2", {}, "What is wrong"),
    el(
      "ul",
      { class: "cards wide" },
      ...scopes.map((s) =>
        el("li", {},
          el("p", {}, el("span", { class: `sign ${s.ready === "False" ? "failed" : "unknown"}`, role: "img", "aria-label": s.ready === "False" ? "not ready" : "unknown" }, s.ready === "False" ? "✗" : "?"),
            el("a", { href: beside({ panel: "scope", scope: s.name }) }, short(s.name, 80)), el("strong", {}, s.reason)),
          el("p", { class: "message" }, s.message)),
      ),
      ...blocks.slice(0, 100).map(({ b }) => {
        const bad = b.links.filter((l) => l[2] === Is.failed || l[2] === Is.partial);
        const reasons = [...new Set(bad.map((l) => chart.reasons[l[3]] ?? ""))].filter((r) => r).join(", ");
        const first = b.namespaces[0] ?? "";
        const many = b.namespaces.length > 1;

        return el("li", {},
          el("p", {}, el("span", { class: "sign failed", role: "img", "aria-label": "not served" }, "✗"),
            el("a", { href: beside({ panel: many ? "block" : "namespace", namespace: first }) }, many ? `${count(b.namespaces.length, "namespace")}: ${short(first, 30)}, …` : placeName(first)),
            el("strong", {}, reasons)),
          el("p", { class: "dim" }, `${count(new Set(bad.map((l) => l[0])).size, "operator")} not fully there: `,
            [...new Set(bad.map((l) => chart.operators[l[0]]?.label ?? ""))].slice(0, 5).map((l) => short(l, 40)).join(", ")));
      }),
    ),
    chart.notRead.length > 0 ? el("h2", {}, "What you may not see") : null,
    el("ul", { class: "plain" }, ...chart.notRead.map((n) => el("li", { class: "note" }, n))),
    ...chart.notes.map((n) => el("p", { class: "note" }, n)),
  );
}

/** changes lists what changed since the page is open, newest first. */
export function changes(model: Model, all: Change[], since: number): HTMLElement {
  return el(
    "div",
    { class: "list" },
    el("h2", {}, "What changed"),
    el("p", { class: "dim" }, all.length === 0 ? "Nothing since ambit serve began. A change is shown within two seconds." : "Since ambit serve began, newest first. What is marked came since this page is open."),
    el("ol", { class: "cards wide" }, ...[...all].reverse().map((c, at) => change(model, c, all.length - 1 - at >= since))),
  );
}

function change(model: Model, c: Change, isNew: boolean): HTMLElement {
  const first = c.namespaces[0];
  const many = c.namespaces.length > 1;
  const place = first === undefined ? null : el("a", { href: many ? beside({ panel: "block", namespace: first }) : beside({ panel: "namespace", namespace: first }) },
    many ? `${count(c.namespaces.length, "namespace")}: ${short(first, 30)}, …` : placeName(first));
  const who = c.operators.length > 3 ? `${c.operators.slice(0, 3).map((o) => short(o, 40)).join(", ")} and ${c.operators.length - 3} more` : c.operators.map((o) => short(o, 40)).join(", ");

  return el(
    "li",
    { class: isNew ? "new" : null },
    el("p", {}, el("time", { datetime: c.time }, clock(c.time)), el("span", { class: `sign ${signOf(c)}`, "aria-hidden": "true" }, { served: "+", failed: "✗", partial: "◐", unknown: "?", none: "−" }[signOf(c)] ?? "→"),
      el("strong", {}, sentence(model, c)), place),
    el("p", { class: "dim" }, who ? `${who}, for ` : "", el("a", { href: beside({ panel: "scope", scope: c.scope }) }, short(c.scope, 80)), c.reason ? `: ${c.reason}` : ""),
    c.message ? el("p", { class: "message" }, c.message) : null,
  );
}

function signOf(c: Change): string {
  if (c.operators.length === 0) return c.to === "True" ? "served" : c.to === "" ? "none" : c.to === "False" ? "failed" : "unknown";

  return c.to === "" ? "none" : c.to === "own" || c.to === "idle" ? "served" : c.to;
}

function sentence(model: Model, c: Change): string {
  const word = (state: string) => model.chart.states.find((s) => s.state === state)?.word ?? state;

  if (c.operators.length === 0) {
    if (c.to === "") return "Scope is gone";
    if (c.from === "") return "New scope";

    return c.to === "True" ? "Scope is ready" : "Scope is not ready";
  }
  if (c.from === "") return c.to === "served" ? "Joined" : `Joined, ${word(c.to)}`;
  if (c.to === "") return "Left";

  return `Was ${word(c.from)}, now ${word(c.to)}`;
}

/** tabs are the links between the views. */
export function tabs(model: Model | null, news: number, planned: number): HTMLElement[] {
  const here = route();
  const bad = model ? model.chart.scopes.filter((s) => s.ready === "False").length + model.chart.blocks.filter((_, at) => model.isWrong(at)).length : 0;
  const tab = (view: typeof here.view, name: string, badge: number, what: string) =>
    el("a", { href: link({ ...here, view }), "aria-current": here.view === view ? "page" : null }, name,
      badge > 0 ? el("span", { class: "badge", "aria-label": `${badge} ${what}` }, badge > 99 ? "99+" : String(badge)) : null);

  return [tab("map", "Map", 0, ""), tab("matrix", "Matrix", 0, ""), tab("wrong", "Wrong", bad, "wrong"), tab("changes", "Changes", news, "new"),
    tab("plan", "Plan", planned, "namespaces would change")];
}
