// The map: operators on the left, namespaces on the right, scopes between them. A band is as wide as its namespaces are many.

import { el, fill, place } from "./dom";
import { Is, Mark, marks, Model, placeName, strongest } from "./model";
import type { Link, Scope } from "./model";
import { beside, link, route } from "./route";
import { count, short } from "./text";

/** Measures, in pixels. */
const row = 34;
const gap = 8;
const bandsHeight = 320;
/** The largest kinds of namespaces are drawn, and of what is wrong so many besides. */
const most = 14;
const mostWrong = 8;
const mostTeams = 200;

/** Team is operators of one namespace that are alike everywhere. */
interface Team {
  operators: number[];
  scopes: number[];
  wrong: boolean;
  top: number;
}

interface Middle {
  scope: number;
  top: number;
  height: number;
  out: number;
}

interface Right {
  block: number;
  top: number;
  height: number;
  in: number;
}

interface Band {
  scope: number;
  block: number;
  width: number;
  state: Is;
  mark: Mark;
}

/** map draws a model; of a plan, everything that would change is on it, and marked. */
export function map(model: Model, changed: Set<string>, isPlan = false): HTMLElement {
  const { chart } = model;
  const teams = teamsOf(model);
  const { blocks, left: hidden } = chosen(model);
  const bands = bandsOf(model, blocks);
  const used = new Set(bands.map((b) => b.scope));
  const scopes = chart.scopes.map((_, at) => at).filter((at) => used.has(at) || chart.scopes[at]?.ready !== "True" && !isTemplate(chart.scopes[at]));

  if (teams.length === 0 && scopes.length === 0) return empty(model);

  const height = (b: number) => bands.filter((band) => band.block === b).reduce((sum, band) => sum + band.width + 2, 0);
  let top = 0;
  const right: Right[] = blocks.map((block) => {
    const r = { block, top, height: Math.max(row + 12, height(block)), in: 0 };
    top += r.height + gap;

    return r;
  });

  const heights = scopes.map((s) => Math.max(row + 14, bands.filter((b) => b.scope === s).reduce((sum, b) => sum + b.width + 2, 0)));
  const all = Math.max(top + (chart.unserved.length > 0 ? row + 20 : 0) + (hidden.length > 0 ? row + 20 : 0), teams.length * (row + 4), heights.reduce((a, b) => a + b + gap * 3, 0), 200);
  const middle = spread(scopes, heights, all);
  const start = Math.max(0, (all - teams.length * (row + 4)) / 2);
  teams.forEach((t, at) => (t.top = start + at * (row + 4)));

  return draw(model, changed, isPlan, { teams, middle, right, bands, hidden, all, names: chart.states.map((s) => s.state) });
}

/** chosen are the blocks that are drawn, largest first, and those that are left for the matrix. */
function chosen(model: Model): { blocks: number[]; left: number[] } {
  const { blocks: all } = model.chart;
  const size = (at: number) => all[at]?.namespaces.length ?? 0;
  const drawn = all.map((_, at) => at).filter((at) => all[at]?.links.some((l) => l[2] !== Is.own && !l[4]));
  const isMarked = (at: number) => Number(all[at]?.links.some((l) => l[5] !== Mark.none) ?? false);
  drawn.sort((a, b) => isMarked(b) - isMarked(a) || size(b) - size(a));
  const open = route().panel === "block" || route().panel === "namespace" ? model.blockOf.get(route().namespace ?? "") : undefined;
  const besides = new Set(drawn.slice(most).filter((at) => model.isWrong(at)).slice(0, mostWrong));
  const blocks = drawn.filter((at, n) => n < most || besides.has(at) || at === open);

  return { blocks, left: drawn.filter((at) => !blocks.includes(at)) };
}

function isTemplate(s: Scope | undefined): boolean {
  return s?.name.startsWith("ScopeTemplate ") ?? false;
}

function empty(model: Model): HTMLElement {
  const seen = model.chart.notRead.length > 0 ? " that you may see" : "";

  const { namespace } = model.chart;
  const whose = namespace ? `is in namespace ${short(namespace, 60)}` : "Ambit keeps";

  return el("p", { class: "empty" }, `There is no operator${seen} whose scope ${whose}. `,
    // Whoever owns a member sees none of the scopes that name it, and who works there all the same.
    namespace ? el("a", { href: beside({ panel: "namespace", namespace }) }, `Operators that serve ${short(namespace, 60)}`) : null);
}

/** spread puts scopes beneath each other, with the same space between them. */
function spread(scopes: number[], heights: number[], all: number): Middle[] {
  const space = (all - heights.reduce((a, b) => a + b, 0)) / (scopes.length + 1);
  let top = space;

  return scopes.map((scope, at) => {
    const m = { scope, top, height: heights[at] ?? row, out: 0 };
    top += m.height + space;

    return m;
  });
}

function teamsOf(model: Model): Team[] {
  const { chart } = model;
  const said: string[][] = chart.operators.map(() => []);
  const scopes: Set<number>[] = chart.operators.map(() => new Set());
  const wrong = new Set<number>();

  chart.blocks.forEach((block, b) => {
    for (const [o, s, state, reason, besides] of block.links) {
      said[o]?.push(`${b}/${s}/${state}/${reason}`);
      if (!besides) scopes[o]?.add(s);
      if (state === Is.failed || state === Is.partial) wrong.add(o);
    }
  });

  const teams = new Map<string, Team>();
  chart.operators.forEach((o, at) => {
    if (scopes[at]?.size === 0) return;
    const key = [o.kind, o.namespace ?? "", ...(said[at] ?? [])].join(" ");
    const team = teams.get(key) ?? { operators: [], scopes: [...(scopes[at] ?? [])], wrong: wrong.has(at), top: 0 };
    team.operators.push(at);
    teams.set(key, team);
  });

  return [...teams.values()].slice(0, mostTeams);
}

/** bandsOf are those from scopes to blocks, each in the worst of its states. */
function bandsOf(model: Model, blocks: number[]): Band[] {
  const bands: Band[] = [];
  const scopesOf = (b: number) => new Set(model.chart.blocks[b]?.links.filter((l) => l[2] !== Is.own && !l[4]).map((l) => l[1])).size;
  const total = blocks.reduce((sum, b) => sum + (model.chart.blocks[b]?.namespaces.length ?? 0) * scopesOf(b), 0);

  for (const block of blocks) {
    const found = new Map<number, Link[]>();
    for (const l of model.chart.blocks[block]?.links ?? []) {
      if (l[2] !== Is.own && !l[4]) found.set(l[1], [...(found.get(l[1]) ?? []), l]);
    }

    const n = model.chart.blocks[block]?.namespaces.length ?? 0;
    for (const [scope, links] of found) {
      bands.push({ scope, block, width: Math.max(2.5, (n / Math.max(total, 12)) * bandsHeight), state: worst(links), mark: strongest(links) });
    }
  }

  return bands;
}

function worst(links: Link[]): Is {
  for (const s of [Is.failed, Is.partial, Is.unknown, Is.idle]) if (links.some((l) => l[2] === s)) return s;

  return Is.served;
}

interface Layout {
  teams: Team[];
  middle: Middle[];
  right: Right[];
  bands: Band[];
  /** hidden are the blocks that are not drawn. */
  hidden: number[];
  all: number;
  /** names are those of the states, by number. */
  names: string[];
}

function draw(model: Model, changed: Set<string>, isPlan: boolean, at: Layout): HTMLElement {
  const canvas = el("svg", { class: "bands", "aria-hidden": "true", preserveAspectRatio: "none" });
  const area = el("div", { class: "map-area" }, canvas as unknown as Node);
  place(area, { height: at.all + 24 });

  const titles = el(
    "div",
    { class: "map-titles" },
    el("h2", {}, "Operators"),
    el("h2", {}, "Scopes"),
    el("h2", {}, "Namespaces"),
  );
  area.append(
    list("operators", at.teams.map((t) => place(el("li", {}, team(model, t)), { top: t.top, height: row }))),
    list("scopes", at.middle.map((m) => place(el("li", {}, scope(model, m, changed)), { top: m.top, height: m.height }))),
    list("namespaces", [...at.right.map((r) => place(el("li", {}, block(model, r, changed)), { top: r.top, height: r.height })), ...rest(model, at)]),
  );

  const paint = () => {
    const width = area.clientWidth;
    if (width === 0) return;
    canvas.setAttribute("viewBox", `0 0 ${width} ${at.all + 24}`);
    fill(canvas, patterns(), ...lines(at, width));
  };
  new ResizeObserver(paint).observe(area);

  return el("div", { class: isPlan ? "map plan" : "map" }, titles, isPlan ? planLegend() : legend(model), area);
}

function list(name: string, items: HTMLElement[]): HTMLElement {
  return el("ul", { class: `column ${name}`, "aria-label": name }, ...items);
}

function team(model: Model, t: Team): HTMLElement {
  const { operators } = model.chart;
  const first = operators[t.operators[0] ?? 0];
  const many = t.operators.length > 1;
  const label = first?.label ?? "";
  const isOpen = route().panel === "operator" && t.operators.some((o) => operators[o]?.label === route().operator);

  return el(
    "a",
    { class: "node operator", href: beside({ panel: "operator", operator: label }), "aria-current": isOpen ? "true" : null, title: label },
    el(
      "span",
      { class: "name" },
      first?.namespace ? el("span", { class: "dim" }, short(first.namespace, 24) + "/") : null,
      many ? count(t.operators.length, "account") : short(first?.namespace ? first.name : label, 30),
    ),
    t.wrong ? el("span", { class: "sign failed", role: "img", "aria-label": "not served everywhere" }, "✗") : null,
  );
}

function scope(model: Model, m: Middle, changed: Set<string>): HTMLElement {
  const s = model.chart.scopes[m.scope];
  if (!s) return el("span");
  const kind = s.name.slice(0, s.name.indexOf(" "));
  const state = s.ready === "True" ? "served" : s.ready === "False" ? "failed" : "unknown";
  const sign = { served: "✓", failed: "✗", unknown: "?" }[state];
  const isOpen = route().panel === "scope" && route().scope === s.name;

  return el(
    "a",
    {
      class: `node scope ${state}`,
      href: beside({ panel: "scope", scope: s.name }),
      "aria-current": isOpen ? "true" : null,
      title: s.name,
    },
    el("span", { class: `sign ${state}`, role: "img", "aria-label": s.ready === "True" ? "ready" : s.reason || "unknown" }, sign),
    el("span", { class: "name" }, short(s.name.slice(kind.length + 1), 34), el("span", { class: "dim kind" }, kind)),
    s.reason === "Planned" ? badge(Mark.created) : null,
    changed.has(s.name) ? el("span", { class: "news" }, "changed") : null,
  );
}

function block(model: Model, r: Right, changed: Set<string>): HTMLElement {
  const b = model.chart.blocks[r.block];
  if (!b) return el("span");
  const first = b.namespaces[0] ?? "";
  const many = b.namespaces.length > 1;
  const state = worst(b.links.filter((l) => l[2] !== Is.own && !l[4]));
  const reasons = [...new Set(b.links.map((l) => model.chart.reasons[l[3]] ?? "").filter((reason) => reason))];
  const isOpen = (route().panel === "block" || route().panel === "namespace") && b.namespaces.includes(route().namespace ?? "-");
  const word = model.chart.states[state];

  return el(
    "a",
    {
      class: `node block ${word?.state ?? ""} ${marks[strongest(b.links)]?.name ?? ""}`,
      href: beside({ panel: many ? "block" : "namespace", namespace: first }),
      "aria-current": isOpen ? "true" : null,
      title: many ? `${first} … ${b.namespaces[b.namespaces.length - 1] ?? ""}` : placeName(first),
    },
    el("span", { class: `sign ${word?.state ?? ""}`, role: "img", "aria-label": word?.word ?? "" }, word?.sign ?? ""),
    el(
      "span",
      { class: "name" },
      many ? count(b.namespaces.length, "namespace") : short(placeName(first), 34),
      el("span", { class: "dim kind" }, reasons.length > 0 ? reasons.join(", ") : many ? `${short(first, 22)} and others` : (word?.word ?? "")),
    ),
    badge(strongest(b.links)),
    b.namespaces.some((n) => changed.has("namespace " + n)) ? el("span", { class: "news" }, "changed") : null,
  );
}

/** rest is what has no band: namespaces that nobody serves, and what is too much for a picture. */
function rest(model: Model, at: Layout): HTMLElement[] {
  const last = at.right[at.right.length - 1];
  const top = last ? last.top + last.height + gap : 0;
  const out: HTMLElement[] = [];

  if (model.chart.unserved.length > 0) {
    out.push(
      place(
        el("li", {}, el("a", { class: "node block none", href: beside({ panel: "block", namespace: "" }) },
          el("span", { class: "sign none", "aria-hidden": "true" }, "·"),
          el("span", { class: "name" }, count(model.chart.unserved.length, "namespace"), el("span", { class: "dim kind" }, "served by no operator")))),
        { top, height: row + 12 },
      ),
    );
  }

  if (at.hidden.length > 0) {
    const n = at.hidden.reduce((sum, b) => sum + (model.chart.blocks[b]?.namespaces.length ?? 0), 0);
    const bad = at.hidden.filter((b) => model.isWrong(b)).length;
    out.push(place(el("li", {}, el("a", { class: "node block none", href: link({ view: "matrix", fold: "yes", theme: route().theme }) },
      el("span", { class: "sign none", "aria-hidden": "true" }, "…"),
      el("span", { class: "name" }, `${count(n, "namespace")} of ${count(at.hidden.length, "more kind")}`,
        el("span", { class: "dim kind" }, (bad > 0 ? `${count(bad, "kind")} with something wrong; ` : "") + "the matrix shows them")))),
      { top: top + (model.chart.unserved.length > 0 ? row + 20 : 0), height: row + 12 }));
  }

  return out;
}

/** patterns say without a colour what a band means. */
function patterns(): Node {
  const hatch = (id: string, size: number, line: number) =>
    el(
      "pattern",
      { id, width: size, height: size, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      el("rect", { width: size, height: size, class: `ground ${id}` }),
      el("line", { x1: 0, y1: 0, x2: 0, y2: size, class: `stripe ${id}`, "stroke-width": line }),
    );

  return el("defs", {}, hatch("failed", 8, 4), hatch("partial", 12, 3), hatch("unknown", 6, 1));
}

/** lines are the bands, in the order of their ends, so that they cross as little as may be. */
function lines(at: Layout, width: number): Node[] {
  const [a, b, c, d] = columns(width);
  const out: Node[] = [];

  for (const t of at.teams) {
    for (const s of t.scopes) {
      const m = at.middle.find((m) => m.scope === s);
      if (!m) continue;
      const y1 = t.top + row / 2;
      const y2 = m.top + m.height / 2;
      out.push(el("path", { class: "thread", d: `M${a} ${y1} C${(a + b) / 2} ${y1} ${(a + b) / 2} ${y2} ${b} ${y2}` }));
    }
  }

  for (const r of at.right) {
    r.in = 0;
  }
  for (const m of at.middle) {
    const mine = at.bands.filter((band) => band.scope === m.scope);
    m.out = (m.height - mine.reduce((sum, band) => sum + band.width + 2, 0)) / 2;
  }

  for (const r of at.right) {
    const mine = at.bands.filter((band) => band.block === r.block);
    r.in = (r.height - mine.reduce((sum, band) => sum + band.width + 2, 0)) / 2;

    for (const m of at.middle) {
      for (const band of mine) {
        if (band.scope !== m.scope) continue;
        const y1 = m.top + m.out;
        const y2 = r.top + r.in;
        const x = (c + d) / 2;
        m.out += band.width + 2;
        r.in += band.width + 2;
        out.push(
          el("path", {
            class: `band ${at.names[band.state]} ${marks[band.mark]?.name ?? ""}`,
            d: `M${c} ${y1} C${x} ${y1} ${x} ${y2} ${d} ${y2} V${y2 + band.width} C${x} ${y2 + band.width} ${x} ${y1 + band.width} ${c} ${y1 + band.width} Z`,
          }),
        );
      }
    }
  }

  return out;
}

/** columns are where bands begin and end; the style sheet puts the nodes there. */
function columns(width: number): [number, number, number, number] {
  return [width * 0.26, width * 0.38, width * 0.62, width * 0.74];
}

/** planLegend are the signs of a plan. */
function planLegend(): HTMLElement {
  return el("ul", { class: "legend", "aria-label": "signs" },
    ...marks.map((m) => el("li", {}, el("span", { class: `sign mark ${m.name}`, "aria-hidden": "true" }, m.sign || "·"), m.word)));
}

/** badge says what a plan would do with what it stands beside. */
function badge(mark: Mark): HTMLElement | null {
  const m = marks[mark];

  return m && mark !== Mark.none ? el("span", { class: `mark ${m.name}` }, `${m.sign} ${m.word}`) : null;
}

function legend(model: Model): HTMLElement {
  return el(
    "ul",
    { class: "legend", "aria-label": "signs" },
    ...model.chart.states.filter((s) => s.state !== "own").map((s) =>
      el("li", {}, el("span", { class: `sign ${s.state}`, "aria-hidden": "true" }, s.sign), s.word)),
  );
}
