// What is beside a view: the chain of why, who serves a namespace, what becomes of a scope, and the command that says the same.

import { el, fill } from "./dom";
import { ask, Is, Mark, marks, Model, placeName } from "./model";
import type { Operator, PlannedObject } from "./model";
import { beside, link, route } from "./route";
import { count, quoted, short } from "./text";

interface Rule {
  verbs?: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
}

interface Ref {
  kind: string;
  namespace?: string;
  name: string;
}

interface Author {
  manager?: string;
  by?: string;
}

interface Right {
  rules: Rule[];
  binding: Ref;
  role: Ref;
  everywhere?: boolean;
  through?: string;
  scope?: Ref;
  sourceBinding?: Ref;
  sourceRole?: Ref;
  authorization?: string;
  author?: Author;
  scopeAuthor?: Author;
  problem?: string;
}

/** Question is what was asked, as the API server calls it. */
interface Question {
  verb: string;
  group?: string;
  resource: string;
  name?: string;
}

interface Why {
  question?: Question;
  allowed: boolean | null;
  rights: Right[];
  hints?: string[];
  notes?: string[];
  notRead?: string[];
}

interface Cell {
  state: string;
  services: { scope: string; state: string; reason?: string; message?: string; roles: { name: string; missing?: boolean; rules?: Rule[] }[] }[];
}

type Part = Node | null;

/** panel makes what is open beside the view; null when nothing is. Beside a plan, it says what that would do. */
export function panel(model: Model, isPlan = false): HTMLElement | null {
  const { panel: kind, operator = "", namespace = "", scope = "", verb = "", resource = "", name = "" } = route();
  const body = el("div", { class: "panel-body" });
  const open = (title: string, ...parts: Part[]) => {
    fill(body, ...parts);

    return el(
      "section",
      { class: "panel", "aria-label": title, tabindex: -1, id: "panel" },
      el("header", {}, el("h2", {}, title), el("a", { class: "close", href: beside({}), "aria-label": "Close" }, "✕")),
      body,
    );
  };

  switch (kind) {
    case "cell":
      return open(`${short(operator, 60)} in ${placeName(namespace)}`, ...cellParts(model, operator, namespace));
    case "rights":
      return open(`${short(operator, 60)} in ${namespace}`, ...questionParts(model, operator, namespace, verb, resource));
    case "who":
      return open(`Who may ${short(verb, 20)} ${short(resource, 60)} in ${placeName(namespace)}?`, ...whoParts(model, verb, resource, namespace));
    case "person":
      return open(`Who is called ${short(name, 60)}?`, ...personParts(name));
    case "namespace":
      return open(placeName(namespace), ...(isPlan ? [...plannedParts(model, namespace), section("As it is now")] : []), ...namespaceParts(model, namespace));
    case "operator":
      return open(short(operator, 60), ...operatorParts(model, operator));
    case "scope":
      return open(short(scope, 60), ...scopeParts(model, scope));
    case "block":
      return isPlan ? open(placeName(namespace), ...plannedParts(model, namespace), ...blockParts(model, namespace).slice(1) as Part[]) : open(...blockParts(model, namespace));
    default:
      return null;
  }
}

/** later is what a question will be answered with. */
function later<T>(question: string, parameters: Record<string, string>, show: (data: T) => Part[]): HTMLElement {
  const place = el("div", { class: "answer", "aria-busy": "true" }, el("p", { class: "dim" }, "Asking the cluster…"));

  ask<T>(question, parameters)
    .then((data) => fill(place, ...show(data)))
    .catch((error: unknown) => fill(place, el("p", { class: "message" }, error instanceof Error ? error.message : "It cannot be asked.")))
    .finally(() => place.removeAttribute("aria-busy"));

  return place;
}

function section(title: string, ...parts: Part[]): HTMLElement {
  return el("section", {}, el("h3", {}, title), ...parts);
}

/** command says how to ask the same in a terminal, of the same cluster and as the same user. */
function command(model: Model, ...words: string[]): HTMLElement {
  const text = [...words, ...(model.chart.flags ?? [])].map(quoted).join(" ");
  const copied = el("span", { role: "status", class: "dim" });
  const copy = el("button", { type: "button", click: () => void navigator.clipboard.writeText(text).then(() => fill(copied, "copied")) }, "Copy");

  return section("In a terminal", el("div", { class: "command" }, el("code", { tabindex: 0 }, text), copy), copied);
}

function chip(state: string, words: string, sign: string): HTMLElement {
  return el("p", { class: `chip ${state}` }, el("span", { class: `sign ${state}`, "aria-hidden": "true" }, sign), words);
}

function chipOf(model: Model, state: string, reason = ""): HTMLElement {
  const known = model.chart.states.find((s) => s.state === state);

  return chip(state, (known?.word ?? state) + (reason ? `: ${reason}` : ""), known?.sign ?? "");
}

function cellParts(model: Model, label: string, namespace: string): Part[] {
  const o = model.chart.operators[model.byLabel.get(label) ?? -1];
  const isAccount = o?.kind === "ServiceAccount" && o.namespace !== undefined && o.name !== "*";
  const scopes = (cell: Cell) => [...new Set(cell.services.map((s) => s.scope))];

  return [
    later<Cell>("cell", { operator: label, namespace }, (cell) => [
      chipOf(model, cell.state, cell.services.find((s) => s.state === cell.state)?.reason),
      ...cell.services.map((s) => (s.message ? el("p", { class: "message" }, s.message) : null)),
      isAccount && namespace !== "" ? null : section("Roles", ...cell.services.flatMap((s) => s.roles.map((r) => roleOf(r)))),
    ]),
    isAccount && namespace !== ""
      ? section("Why", later<Why>("why", { account: label, namespace }, (why) => chain(why, label)))
      : null,
    isAccount && namespace !== "" ? command(model, "ambit", "why", label, "-n", namespace) : command(model, "ambit", "matrix", "--operator", o?.name ?? label),
    later<Cell>("cell", { operator: label, namespace }, (cell) => scopes(cell).map((s) => events(s))),
    el("p", {}, el("a", { href: beside({ panel: "namespace", namespace }) }, `All operators of ${placeName(namespace)}`)),
  ];
}

function roleOf(r: { name: string; missing?: boolean; rules?: Rule[] }): HTMLElement {
  return el(
    "div",
    { class: "step" },
    el("p", {}, r.name, r.missing ? el("strong", { class: "failed" }, " ✗ missing") : null),
    ...(r.rules ?? []).map((rule) => el("p", { class: "rule" }, words(rule))),
  );
}

/** words say a rule. */
function words(r: Rule): string {
  const list = (l: string[] | undefined) => (l ?? []).map((w) => (/^[\p{L}\p{N}._:/*@+~-]+$/u.test(w) ? w : JSON.stringify(w))).join(", ");
  const groups = (r.apiGroups ?? []).filter((g) => g !== "" && g !== "rbac.authorization.k8s.io");
  const what = list([...(r.resources ?? []), ...(r.nonResourceURLs ?? [])]);

  return list(r.verbs) + " " + what + (r.resourceNames?.length ? " named " + list(r.resourceNames) : "") + (groups.length ? " of " + list(groups) : "");
}

function nameOf(r: Ref): string {
  return r.kind + " " + (r.namespace ? r.namespace + "/" : "") + r.name;
}

function authorOf(a: Author | undefined): string {
  if (!a) return "nobody knows whom";
  if (!a.by) return a.manager ?? "";

  return a.manager ? `${a.manager} (${a.by})` : a.by;
}

/** chain is the way of each right: what it allows, by which binding, copied from where, for which scope, by whom. */
function chain(why: Why, label: string): Part[] {
  const own = why.rights.filter((r) => !isEverybodys(r));
  const others = why.rights.length - own.length;
  const parts: Part[] = own.map((r) => rightOf(r));

  if (own.length === 0) parts.push(el("p", { class: "dim" }, `Nothing here is for ${label}, as far as you may see.`));
  for (const hint of why.hints ?? []) parts.push(el("p", { class: "message" }, `Why not: ${hint}.`));
  for (const note of [...(why.notes ?? []), ...(why.notRead ?? [])]) parts.push(el("p", { class: "note" }, note));
  if (others > 0) parts.push(el("p", { class: "dim" }, `Besides, ${count(others, "right")} that every service account has.`));

  return parts;
}

function isEverybodys(r: Right): boolean {
  return (
    r.everywhere === true && (r.through === "system:serviceaccounts" || r.through === "system:authenticated") && r.binding.name.startsWith("system:")
  );
}

/** rightOf is one right; of who may do something, nobody asks who wrote the scope. */
function rightOf(r: Right, isWhy = true): HTMLElement {
  const step = (what: string, ...parts: (Node | string | null)[]) => el("li", {}, el("span", { class: "what" }, what), el("span", {}, ...parts));
  const scope = r.scope ? nameOf(r.scope) : "";
  const from = [r.sourceBinding, r.sourceRole].filter((s) => s !== undefined).map(nameOf).join(", ");

  return el(
    "ol",
    { class: "chain" },
    r.rules?.length ? el("li", { class: "rights" }, el("span", { class: "what" }, "may"), el("span", {}, ...r.rules.map((rule) => el("strong", {}, words(rule))))) : null,
    step("by", nameOf(r.binding), r.everywhere ? ", in the whole cluster" : null, r.through ? `, through the group ${r.through}` : null),
    step("to", nameOf(r.role)),
    r.scope ? step("copied", from ? `from ${from}` : "from nothing: the scope says it itself") : null,
    r.scope ? step("for", el("a", { href: beside({ panel: "scope", scope }) }, scope), isWhy ? `, written by ${authorOf(r.scopeAuthor)}` : null) : null,
    r.scope ? null : step("from", r.authorization ? `ambit authorize: ${r.authorization}` : `nothing of Ambit's; written by ${authorOf(r.author)}`),
    r.problem ? step("but", el("strong", { class: "failed" }, "✗ " + r.problem)) : null,
  );
}

function questionParts(model: Model, account: string, namespace: string, verb: string, resource: string): Part[] {
  return [
    later<Why>("why", { account, namespace, verb, resource }, (why) => {
      const what = `${verb} ${resourceOf(why.question) ?? resource} in ${namespace}`;

      return [
        why.allowed === null
          ? chip("unknown", `It is unknown whether it may ${what}`, "?")
          : why.allowed
            ? chip("served", `Yes, it may ${what}`, "✓")
            : chip("failed", `No, it may not ${what}`, "✗"),
        ...chain(why, account),
      ];
    }),
    command(model, "ambit", "why", account, "-n", namespace, "--verb", verb, "--resource", resource),
  ];
}

/** resourceOf is the resource that was found for a question, as RESOURCE.GROUP/SUBRESOURCE. */
function resourceOf(q: Question | undefined): string | undefined {
  if (!q?.group) return q?.resource;

  const [resource, ...subresource] = q.resource.split("/");

  return [`${resource}.${q.group}`, ...subresource].join("/");
}

/** Holder is somebody who may do what was asked, as ambit who-can prints it. */
interface Holder {
  kind: string;
  namespace?: string;
  name: string;
  right: Right;
  aggregated?: string[];
}

interface Who {
  question?: Question;
  namespace?: string;
  holders: Holder[];
  unread?: { binding: Ref; problem?: string }[];
  notes?: string[];
  notRead?: string[];
}

function whoParts(model: Model, verb: string, resource: string, namespace: string): Part[] {
  return [
    later<Who>("who-can", { verb, resource, namespace }, (d) => [
      (resourceOf(d.question) ?? resource) !== resource ? el("p", { class: "note" }, `This is about ${resourceOf(d.question)}.`) : null,
      ...(d.notes ?? []).map((n) => el("p", { class: "note" }, n)),
      namespace !== "" && !d.namespace ? el("p", { class: "note" }, `${resource} are in no namespace, so this is about the whole cluster.`) : null,
      d.holders.length === 0 ? el("p", { class: "dim" }, "Nobody, by the bindings that you may read.") : null,
      el("ul", { class: "cards" }, ...d.holders.slice(0, shownAtOnce).map((h) => holder(h))),
      d.holders.length > shownAtOnce ? el("p", { class: "dim" }, `and ${d.holders.length - shownAtOnce} more; the command shows all.`) : null,
      ...(d.notRead ?? []).map((n) => el("p", { class: "note" }, `${n}, so others may be able to`)),
      ...(d.unread ?? []).map((u) => el("p", { class: "note" }, `${nameOf(u.binding)}: ${u.problem ?? "its role may not be read"}`)),
      el("p", { class: "dim" }, "This is what RBAC says. Who is in a group is in no object; the group system:masters may do everything."),
    ]),
    command(model, "ambit", "who-can", verb, resource, ...(namespace === "" ? ["-A"] : ["-n", namespace])),
  ];
}

function holder(h: Holder): HTMLElement {
  const account = h.kind === "ServiceAccount" && h.namespace ? `${h.namespace}/${h.name}` : "";

  return el(
    "li",
    {},
    el("p", {}, el("span", { class: "dim" }, (account ? "account" : h.kind.toLowerCase()) + " "), el("strong", {}, short(account || h.name, 80))),
    rightOf(h.right, false),
    h.aggregated?.length ? el("p", { class: "dim" }, `The role has it from ${h.aggregated.map((a) => short(a, 60)).join(", ")}.`) : null,
  );
}

interface People {
  bound: Holder[];
  more?: boolean;
  notRead?: string[];
}

/** personParts are the people with a name, and what binds them. What a role allows, the roles say: somebody may be bound in every namespace. */
function personParts(name: string): Part[] {
  return [
    later<People>("people", { name }, (d) => [
      d.bound.length === 0 ? el("p", { class: "dim" }, "Nobody, in the bindings that you may read.") : null,
      el("ul", { class: "cards" }, ...d.bound.slice(0, shownAtOnce).map((h) => holder(h))),
      d.more || d.bound.length > shownAtOnce ? el("p", { class: "dim" }, "and more; give more of the name.") : null,
      ...(d.notRead ?? []).map((n) => el("p", { class: "note" }, `${n}, so there may be others`)),
      el("p", { class: "dim" }, "Kubernetes has no list of people: these are the names in bindings. Who is in a group is in no object."),
    ]),
  ];
}

/** plannedParts are what a plan would do in a namespace. */
function plannedParts(model: Model, namespace: string): Part[] {
  const block = model.chart.blocks[model.blockOf.get(namespace) ?? -1];
  const marked = (block?.links ?? []).filter((l) => l[5] !== 0);

  return [
    ...[...new Set(marked.map((l) => l[5]))].map((mark) => {
      const mine = marked.filter((l) => l[5] === mark);
      const labels = mine.slice(0, 8).map((l) => short(model.chart.operators[l[0]]?.label ?? "", 40)).join(", ");
      const reasons = [...new Set(mine.map((l) => model.chart.reasons[l[3]] ?? ""))].filter((r) => r && mark === Mark.refused).join(", ");

      return el("p", {}, el("span", { class: `mark ${marks[mark]?.name ?? ""}` }, `${marks[mark]?.sign ?? ""} ${marks[mark]?.word ?? ""}`), ` ${labels}${mine.length > 8 ? ` and ${mine.length - 8} more` : ""}${reasons ? `: ${reasons}` : ""}`);
    }),
    section("What would be written", later<{ objects: PlannedObject[] }>("plan", { namespace }, ({ objects }) => [
      objects.length === 0 ? el("p", { class: "dim" }, `Nothing in ${placeName(namespace)}.`) : null,
      el("ul", { class: "cards" }, ...objects.slice(0, shownAtOnce).map((o) =>
        el("li", {}, el("p", {}, el("strong", {}, o.action), ` ${o.kind} ${short(o.name, 60)}`), o.source ? el("p", { class: "dim" }, `from ${o.source}`) : null,
          o.refused ? el("p", { class: "message" }, `✗ ${o.refused}`) : null))),
    ])),
  ];
}

interface Inside {
  operators: { kind: string; namespace?: string; name: string; state: string; reason?: string; message?: string; apis: { resource: string; you: string }[] }[];
  notRead?: string[];
}

function labelOf(o: Omit<Operator, "label">): string {
  if (o.namespace) return `${o.namespace}/${o.name}`;

  return o.kind === "ServiceAccount" ? o.name : `${o.kind} ${o.name}`;
}

function namespaceParts(model: Model, namespace: string): Part[] {
  if (namespace === "") return [el("p", {}, "What holds in the whole cluster."), command(model, "ambit", "matrix")];

  return [
    later<Inside>("operators", { namespace }, (d) => [
      d.operators.length === 0 ? el("p", { class: "dim" }, "No operator serves it, as far as you may see.") : null,
      el("ul", { class: "cards" }, ...d.operators.map((o) => inside(model, o, namespace))),
      ...(d.notRead ?? []).map((n) => el("p", { class: "note" }, n)),
    ]),
    command(model, "ambit", "operators", "-n", namespace),
    el("p", {}, el("a", { href: link({ view: "matrix", filter: namespace, theme: route().theme }) }, "In the matrix")),
  ];
}

function inside(model: Model, o: Inside["operators"][number], namespace: string): HTMLElement {
  const label = labelOf(o);

  return el(
    "li",
    {},
    el("a", { href: beside({ panel: "cell", operator: label, namespace }) }, short(label, 60)),
    chipOf(model, o.state, o.reason),
    ...o.apis.map((a) => el("p", { class: "dim" }, `${a.resource}: you may ${a.you === "no" ? "not use it" : a.you}`)),
  );
}

function operatorParts(model: Model, label: string): Part[] {
  const at = model.byLabel.get(label);
  const o = at === undefined ? undefined : model.chart.operators[at];
  if (at === undefined || !o) return [el("p", { class: "dim" }, "There is no such operator any more, or you may not see it.")];

  const scopes = new Set<string>();
  const blocks: number[] = [];
  model.chart.blocks.forEach((block, b) => {
    const mine = block.links.filter((l) => l[0] === at);
    for (const l of mine) scopes.add(model.chart.scopes[l[1]]?.name ?? "");
    if (mine.length > 0) blocks.push(b);
  });

  return [
    section("Scopes", el("ul", { class: "plain" }, ...[...scopes].map((s) => el("li", {}, el("a", { href: beside({ panel: "scope", scope: s }) }, short(s, 60)))))),
    section("Namespaces", el("ul", { class: "cards" }, ...blocks.slice(0, 50).map((b) => kindOf(model, b, at, label)))),
    command(model, "ambit", "matrix", "--operator", o.namespace ? `${o.namespace}/${o.name}` : label),
  ];
}

/** kindOf is a block from the point of view of an operator. */
function kindOf(model: Model, b: number, operator: number, label: string): HTMLElement {
  const block = model.chart.blocks[b];
  const names = block?.namespaces ?? [];
  const first = names[0] ?? "";
  const reason = block?.links.find((l) => l[0] === operator && l[2] === model.at(b, operator))?.[3] ?? 0;
  const many = names.length > 1;

  return el(
    "li",
    {},
    el("a", { href: many ? beside({ panel: "block", namespace: first }) : beside({ panel: "cell", operator: label, namespace: first }) },
      many ? `${count(names.length, "namespace")}: ${short(first, 24)}, …` : short(placeName(first), 50)),
    chipOf(model, model.state(b, operator).state, model.chart.reasons[reason]),
  );
}

function scopeParts(model: Model, name: string): Part[] {
  const s = model.chart.scopes[model.byScope.get(name) ?? -1];
  if (!s) return [el("p", { class: "dim" }, "There is no such scope any more, or you may not see it.")];

  const at = model.byScope.get(name) ?? 0;
  const short_ = name.slice(name.indexOf(" ") + 1);
  const members = model.chart.blocks.filter((b) => b.links.some((l) => l[1] === at && l[2] !== Is.own)).reduce((n, b) => n + b.namespaces.length, 0);

  return [
    s.ready === "True" ? chip("served", s.reason, "✓") : s.ready === "False" ? chip("failed", s.reason, "✗") : chip("unknown", s.reason || "unknown", "?"),
    s.message ? el("p", { class: "message" }, s.message) : null,
    ...(s.remarks ?? []).map((r) => el("p", { class: "note" }, r)),
    el("p", {}, count(members, "member namespace"), s.failed > 0 ? `, ${s.failed} not fully served` : "", s.notRead > 0 ? `, ${s.notRead} of which you may see nothing` : ""),
    events(name),
    command(model, "ambit", "tree", short_),
  ];
}

interface Event {
  time: string;
  type: string;
  reason: string;
  message: string;
  count?: number;
}

function events(scope: string): HTMLElement {
  return section(
    "Events",
    later<{ events: Event[] }>("events", { scope }, ({ events: all }) => [
      all.length === 0 ? el("p", { class: "dim" }, "None that is still kept.") : null,
      el(
        "ul",
        { class: "events" },
        ...all.slice(0, 20).map((e) =>
          el("li", {}, el("time", { datetime: e.time }, clock(e.time)), el("strong", { class: e.type === "Warning" ? "failed" : "" }, (e.type === "Warning" ? "! " : "") + e.reason), el("span", {}, e.message), (e.count ?? 1) > 1 ? el("span", { class: "dim" }, count(e.count ?? 1, "time")) : null)),
      ),
    ]),
  );
}

/** clock is a time for people. */
export function clock(time: string): string {
  return new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
}

const shownAtOnce = 200;

function blockParts(model: Model, namespace: string): [string, ...Part[]] {
  const at = model.blockOf.get(namespace);
  const block = at === undefined ? undefined : model.chart.blocks[at];
  const names = block?.namespaces ?? (namespace === "" ? model.chart.unserved : []);
  const list = el("ul", { class: "names" });
  const more = el("p", { class: "dim", role: "status" });
  const show = (filter: string) => {
    const found = names.filter((n) => n.includes(filter));
    fill(list, ...found.slice(0, shownAtOnce).map((n) => el("li", {}, el("a", { href: beside({ panel: "namespace", namespace: n }) }, short(placeName(n), 50)))));
    fill(more, found.length > shownAtOnce ? `and ${count(found.length - shownAtOnce, "more namespace")}; filter to see them` : "");
  };
  const filter = el("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter namespaces by name" }) as HTMLInputElement;
  filter.addEventListener("input", () => show(filter.value));
  show("");

  const groups = new Map<string, { state: number; reason: number; labels: string[] }>();
  for (const [o, , state, reason] of block?.links ?? []) {
    const key = `${state}/${reason}`;
    const group = groups.get(key) ?? { state, reason, labels: [] };
    group.labels.push(model.chart.operators[o]?.label ?? "");
    groups.set(key, group);
  }

  return [
    block ? count(names.length, "namespace") + " alike" : count(names.length, "namespace") + " that no operator serves",
    ...[...groups.values()].map((g) => {
      const few = g.labels.slice(0, 8).map((l) => short(l, 40)).join(", ") + (g.labels.length > 8 ? ` and ${g.labels.length - 8} more` : "");

      return el("div", { class: "card" }, chipOf(model, model.chart.states[g.state]?.state ?? "", model.chart.reasons[g.reason]), el("p", { class: "dim" }, few));
    }),
    section("Namespaces", filter, list, more),
    command(model, "ambit", "matrix"),
  ];
}
