// What a plan would change: what ambit plan says of the files with which the page was started, on the map and in words.

import { el } from "./dom";
import { map } from "./map";
import { Model } from "./model";
import type { PlanData, ShownPlan } from "./model";
import { beside } from "./route";
import { count, short } from "./text";

/** plan draws what would change; without files it says how to name some. */
export function plan(shown: ShownPlan | null, model: Model | null): HTMLElement {
  if (shown?.noFiles) {
    return el("div", { class: "list" }, el("h2", {}, "What a plan would change"),
      el("p", { class: "empty" }, "There are no files to plan for. ", el("code", {}, "ambit serve -f FILE"), " draws here what applying FILE would change, as ", el("code", {}, "ambit plan -f FILE"), " says it."));
  }
  if (!shown?.plan || !model) return el("p", { class: "empty", role: "status" }, shown?.problem ?? "Planning…");

  const { data, objects } = shown.plan;
  const unknown = data.unknown ?? [];

  return el(
    "div",
    {},
    el(
      "section",
      { class: "plan-summary", "aria-label": "What would change" },
      shown.problem ? el("p", { class: "message" }, `${shown.problem}; this is the plan from before.`) : null,
      el("p", {}, el("strong", { class: data.refused ? "failed" : "" }, data.refused ? "✗ Something would be refused. " : unknown.length > 0 ? "" : isEmpty(shown) ? "✓ Nothing would change. " : "✓ Nothing would be refused. "), words(objects, data)),
      ...unknown.slice(0, 20).map((u) =>
        el("p", { class: "message" }, el("strong", { class: "failed" }, "Not complete: "), `what the ${u.kinds.join(" and ")}${u.namespace ? ` of namespace ${u.namespace}` : ""} would do is unknown, and the plan lacks it: ${u.why}`)),
      unknown.length > 20 ? el("p", { class: "message" }, `Not complete: ${unknown.length - 20} more.`) : null,
      el("ul", {},
        ...(data.files ?? []).slice(0, 20).map((f) =>
          el("li", {}, `${f.kind} ${f.namespace ? f.namespace + "/" : ""}${short(f.name, 60)}: ${f.result}`, f.refused ? el("strong", { class: "failed" }, ` ✗ the API server would refuse it: ${f.refused}`) : null)),
        ...(data.scopes ?? []).flatMap((s) => (s.says ?? []).map((said) => el("li", { class: "dim" }, `${s.scope}: ${said}`))),
        ...(data.restarts ?? []).slice(0, 20).map((r) => el("li", {}, `${short(`${r.namespace}/${r.reader}`, 60)} would restart: ${r.reason}`)),
        ...(data.installs ?? []).slice(0, 20).map((i) => el("li", {}, `${i.kind} ${i.namespace}/${short(i.name, 50)}: ${i.phase ?? "no phase"}`, i.refused ? el("strong", { class: "failed" }, ` ✗ ${i.message ?? ""}`) : null)),
        ...[...(data.notRead ?? []), ...(data.notes ?? [])].map((n) => el("li", { class: "dim" }, n)),
      ),
    ),
    map(model, new Set(), true),
    el("ul", { class: "list" }, ...(data.scopes ?? []).flatMap((s) => (s.failed ?? []).slice(0, 20).map((f) =>
      el("li", {}, el("span", { class: "sign mark refused", "aria-hidden": "true" }, "✗ "), el("a", { href: beside({ panel: "namespace", namespace: f.namespace }) }, short(f.namespace, 60)), ` ${f.reason}: ${f.message}`)))),
  );
}

function isEmpty({ plan: p }: ShownPlan): boolean {
  return p !== null && Object.keys(p.objects).length === 0 && !p.chart.blocks.some((b) => b.links.some((l) => l[5] !== 0)) && (p.data.restarts ?? []).length === 0;
}

/** words count what would be done. */
function words(objects: Record<string, number>, data: PlanData): string {
  const said: [string, string][] = [["create", "created"], ["update", "changed"], ["delete", "deleted"], ["empty", "emptied"], ["refused", "refused"]];
  const parts = said.flatMap(([key, word]) => (objects[key] ? [`${count(objects[key] ?? 0, "object")} ${word}`] : []));
  const restarts = (data.restarts ?? []).length;
  if (restarts > 0) parts.push(count(restarts, "restart"));

  return parts.join(", ");
}

/** planBadge is how many namespaces a plan would do something to. */
export function planBadge(shown: ShownPlan | null): number {
  return shown?.plan?.chart.blocks.filter((b) => b.links.some((l) => l[5] !== 0)).reduce((n, b) => n + b.namespaces.length, 0) ?? 0;
}

