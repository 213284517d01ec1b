// The page of ambit serve. It shows what the server tells, and asks for nothing but that.

import { el, fill, the } from "./dom";
import { changes, tabs, wrong } from "./lists";
import { listen } from "./live";
import { map } from "./map";
import { matrix } from "./matrix";
import { ask, Model } from "./model";
import type { Change, Shown, ShownPlan } from "./model";
import { clock, panel } from "./panel";
import { plan, planBadge } from "./plan";
import { beside, go, route } from "./route";
import { search } from "./search";
import { count } from "./text";

let model: Model | null = null;
let shown: Shown | null = null;
let planned: ShownPlan | null = null;
let planModel: Model | null = null;
let past: Change[] = [];
/** total is how many changes there were, since when the page was opened, and seen when they were looked at. The server forgets the oldest. */
let total = 0;
let since = -1;
let seen = 0;
let isLost = false;
let drawn = "";

/** opened is where in past the changes begin that came since the page is open. */
function opened(): number {
  return Math.max(0, since - (total - past.length));
}

/** touched are the scopes and namespaces that changed since the page is open. */
function touched(): Set<string> {
  const out = new Set<string>();
  for (const c of past.slice(opened())) {
    out.add(c.scope);
    for (const n of c.namespaces.slice(0, 1000)) out.add("namespace " + n);
  }

  return out;
}

function draw(): void {
  const here = route();
  document.documentElement.dataset["theme"] = here.theme === "dark" || here.theme === "light" ? here.theme : "";
  if (here.view === "changes") seen = total;
  fill(the("tabs"), ...tabs(model, Math.max(0, total - Math.max(seen, since)), planBadge(planned)));
  status();

  if (!model) {
    fill(the("view"), el("p", { class: "empty", role: "status" }, shown?.problem ?? "Looking at the cluster…"));

    return;
  }

  const { panel: open, operator, namespace, scope, verb, resource, name, ...rest } = here;
  const view = JSON.stringify([rest, shown?.version, here.view === "map" ? [open, operator, namespace, scope] : "", here.view === "changes" ? total : here.view === "plan" ? [planned?.version, planned?.noFiles, open, operator, namespace, scope] : 0]);
  if (view !== drawn) {
    const top = the("view").scrollTop;
    const focused = document.activeElement?.getAttribute("href");
    fill(the("view"), { map: () => map(model as Model, touched()), matrix: () => matrix(model as Model), wrong: () => wrong(model as Model),
      changes: () => changes(model as Model, past, opened()), plan: () => plan(planned, planModel) }[here.view]());
    the("view").scrollTop = top;
    if (focused) document.querySelector<HTMLElement>(`#view a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    drawn = view;
  }

  beyond(JSON.stringify([open, operator, namespace, scope, verb, resource, name, here.view === "plan" ? planned?.version ?? 0 : ""]));
  if (document.body.dataset["version"] === undefined) performance.mark("ambit-ready");
  document.body.dataset["version"] = String(shown?.version ?? 0);
}

let besides = "";

/** beyond shows the panel; it stays as it is while the cluster changes elsewhere. */
function beyond(key: string): void {
  const version = `${key}/${shown?.version ?? 0}`;
  if (!model || version === besides) return;
  const aside = the("aside");
  const isOther = !besides.startsWith(key + "/");
  const top = aside.scrollTop;
  const isPlan = route().view === "plan";
  const open = panel(isPlan && planModel ? planModel : model, isPlan);
  besides = version;
  aside.hidden = open === null;
  fill(aside, open);
  if (!isOther) aside.scrollTop = top;
}

function status(): void {
  const line = the("status");
  if (!shown || !model) return;
  const isFresh = !isLost && !shown.problem;
  const { chart } = model;

  fill(
    line,
    el("span", { class: `live ${isFresh ? "served" : "failed"}` }, isFresh ? "● live" : "✗ not live"),
    el("span", {}, `${count(chart.operators.length, "operator")}, ${count(model.namespaces(), "namespace")}`),
    isFresh ? null : el("span", { class: "message" }, `${isLost ? "ambit serve does not answer" : shown.problem}; this is from ${clock(shown.taken)}.`),
    chart.notRead.length > 0 ? el("a", { href: "#view=wrong" }, `${count(chart.notRead.length, "thing")} that you may not see`) : null,
  );
}

let isAsking = false;
let isBehind = false;

/** load shows what is new; while it does, at most one more time waits. */
async function load(): Promise<void> {
  if (isAsking) {
    isBehind = true;

    return;
  }
  isAsking = true;
  try {
    const [next, changed, plans] = await Promise.all([ask<Shown>("overview"), ask<{ changes: Change[]; count: number }>("changes"), ask<ShownPlan>("plan")]);
    if (plans.plan && plans.version !== planned?.version) planModel = new Model(plans.plan.chart);
    planned = plans;
    shown = next;
    past = changed.changes;
    total = changed.count;
    if (since < 0) since = seen = total;
    if (next.chart) model = new Model(next.chart);
    isLost = false;
  } catch (error) {
    isLost = true;
    if (!model) fill(the("view"), el("p", { class: "empty", role: "alert" }, error instanceof Error ? error.message : "The server does not answer."));
  } finally {
    isAsking = false;
  }
  if (model || shown) draw();
  if (isBehind) {
    isBehind = false;
    await load();
  }
}

function toggleTheme(): void {
  const isDark = route().theme ? route().theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  drawn = "";
  go({ theme: isDark ? "light" : "dark" });
}

window.addEventListener("hashchange", (event) => {
  const opens = !new URLSearchParams(new URL(event.oldURL).hash.slice(1)).has("panel") && route().panel;
  draw();
  if (opens) document.getElementById("panel")?.focus({ preventScroll: true });
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.target instanceof HTMLInputElement || !route().panel) return;
  location.hash = beside({});
  the("view").querySelector<HTMLElement>("[role=grid]")?.focus({ preventScroll: true });
});
the("theme").addEventListener("click", toggleTheme);
the("skip").addEventListener("click", () => the("view").focus());
search(() => model);
draw();
void load();
listen((told) => {
  isLost = told.lost ?? false;
  if (isLost) status();
  else if (told.version !== shown?.version || told.plan !== planned?.version || !planned?.noFiles && !planned?.plan) void load();
  else status();
});
