import { printable } from "./text";

export interface Operator {
  kind: string;
  namespace?: string;
  name: string;
  label: string;
}

export interface Scope {
  name: string;
  group: string;
  ready: string;
  reason: string;
  message: string;
  remarks?: string[];
  failed: number;
  notRead: number;
}

export interface State {
  state: string;
  sign: string;
  word: string;
}

/** Link is an operator in a block: indexes of operator, scope, state and reason, 1 for what serves no namespace, and what a plan would do. */
export type Link = [number, number, number, number, number, Mark];

/** What a plan would do, by number, as the server sends it. */
export const enum Mark {
  none,
  created,
  changed,
  deleted,
  refused,
}

/** marks are how that is shown, without a colour. */
export const marks: { name: string; sign: string; word: string }[] = [
  { name: "", sign: "", word: "stays as it is" },
  { name: "created", sign: "+", word: "would join" },
  { name: "changed", sign: "→", word: "would change" },
  { name: "deleted", sign: "−", word: "would leave" },
  { name: "refused", sign: "✗", word: "would be refused" },
];

/** strongest is the mark that is shown of several. */
export function strongest(links: Link[]): Mark {
  for (const mark of [Mark.refused, Mark.deleted, Mark.created, Mark.changed]) if (links.some((l) => l[5] === mark)) return mark;

  return Mark.none;
}

export interface ShownPlan {
  version: number;
  taken: string;
  problem?: string;
  noFiles?: boolean;
  plan: {
    chart: Chart;
    objects: Record<string, number>;
    data: PlanData;
  } | null;
}

interface Refusal {
  reason: string;
  message: string;
}

/** PlanData is of what ambit plan prints for programs what is shown beside the map. */
export interface PlanData {
  files?: { kind: string; namespace?: string; name: string; result: string; refused?: string }[];
  leftOut?: string[];
  scopes?: { scope: string; joins?: string[]; leaves?: string[]; failed?: { namespace: string; reason: string; message: string }[]; says?: string[] }[];
  watchLists?: { namespace: string; name: string; refused?: Refusal }[];
  restarts?: { namespace: string; reader: string; reason: string; refused?: Refusal }[];
  installs?: { kind: string; namespace: string; name: string; before?: string; phase?: string; message?: string; refused?: boolean }[];
  refused?: boolean;
  unknown?: { kinds: string[]; namespace?: string; why: string }[];
  notRead?: string[];
  notes?: string[];
}

export interface PlannedObject {
  action: string;
  kind: string;
  namespace?: string;
  name: string;
  source?: string;
  scope?: string;
  refused?: string;
}

export interface Block {
  namespaces: string[];
  links: Link[];
}

export interface Chart {
  operators: Operator[];
  scopes: Scope[];
  states: State[];
  reasons: string[];
  blocks: Block[];
  unserved: string[];
  notRead: string[];
  notes: string[];
  namespace?: string;
  /** flags are those by which a command reaches the same cluster as the same user. */
  flags?: string[];
}

export interface Shown {
  version: number;
  taken: string;
  problem?: string;
  changes: number;
  planVersion: number;
  chart: Chart | null;
}

export interface Change {
  time: string;
  scope: string;
  from: string;
  to: string;
  reason?: string;
  message?: string;
  operators: string[];
  namespaces: string[];
}

/** The states by number, as the server sends them. */
export const enum Is {
  own,
  served,
  idle,
  partial,
  failed,
  unknown,
}

/** none is the state of a pair that has none. */
export const none: State = { state: "none", sign: "·", word: "not a member" };

/** Model is a chart with what is looked up in it. */
export class Model {
  readonly byLabel = new Map<string, number>();
  readonly byScope = new Map<string, number>();
  /** blockOf says in which block a namespace is. */
  readonly blockOf = new Map<string, number>();
  /** rows are all namespaces that somebody serves: first the whole cluster, then by name. */
  readonly rows: string[] = [];
  /** cells are the states of a block, one for each operator; 255 for none. */
  private readonly cells: Uint8Array[];

  constructor(readonly chart: Chart) {
    chart.operators.forEach((o, at) => this.byLabel.set(o.label, at));
    chart.scopes.forEach((s, at) => this.byScope.set(s.name, at));
    chart.blocks.forEach((block, at) => {
      for (const name of block.namespaces) {
        this.blockOf.set(name, at);
        this.rows.push(name);
      }
    });
    this.rows.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    this.cells = chart.blocks.map((block) => {
      const states = new Uint8Array(chart.operators.length).fill(255);
      for (const [operator, , state] of block.links) {
        const was = states[operator] ?? 255;
        states[operator] = was === 255 ? state : better(was, state);
      }

      return states;
    });
  }

  /** at is the state of an operator in a block, as number; 255 for none. */
  at(block: number, operator: number): number {
    return this.cells[block]?.[operator] ?? 255;
  }

  state(block: number, operator: number): State {
    return this.chart.states[this.at(block, operator)] ?? none;
  }

  /** isWrong says whether an operator is not fully there; what merely may not be read is not wrong. */
  isWrong(block: number): boolean {
    return this.cells[block]?.some((s) => s === Is.failed || s === Is.partial) ?? false;
  }

  namespaces(): number {
    return this.rows.length + this.chart.unserved.length - (this.blockOf.has("") ? 1 : 0);
  }
}

/** better is the state of a cell that two scopes serve: what one of them gives is there. */
function better(a: number, b: number): number {
  const order = [Is.failed, Is.idle, Is.unknown, Is.partial, Is.served, Is.own];

  return order.indexOf(a) > order.indexOf(b) ? a : b;
}

/** placeName is a namespace for people. */
export function placeName(namespace: string): string {
  return namespace === "" ? "the whole cluster" : namespace;
}

/** ask asks the server; the path is relative to the page, so that it stays beneath the secret one. */
export async function ask<T>(question: string, parameters: Record<string, string> = {}): Promise<T> {
  const answer = await fetch(`api/v1/${question}?${new URLSearchParams(parameters)}`, { credentials: "same-origin" });
  const type = answer.headers.get("Content-Type") ?? "";

  if (answer.status === 401) throw new Error("This page is not let in any more. Open the link that the terminal shows.");
  if (!type.startsWith("application/json")) throw new Error(`The server answers ${answer.status}.`);

  const data: unknown = await answer.json();
  if (!answer.ok) throw new Error(printable((data as { error?: string }).error ?? `The server answers ${answer.status}.`));

  return data as T;
}
