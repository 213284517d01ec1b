// Search finds an operator, a namespace, a person, a scope, a resource, and understands a question such as "who may read Secrets in
// payments?".

import { el, fill, the } from "./dom";
import { placeName } from "./model";
import type { Model } from "./model";
import { beside, route } from "./route";
import { short } from "./text";

interface Found {
  what: string;
  text: string;
  href: string;
}

const most = 12;

/** Words that people use for verbs. */
const verbs: Record<string, string> = { read: "get", see: "get", view: "get", write: "update", change: "update", edit: "update", remove: "delete", make: "create" };

/** find are the answers to what was typed. */
export function find(model: Model, typed: string): Found[] {
  const text = typed.trim().replace(/\?$/, "").trim();
  if (text === "") return [];

  const asked = question(text);
  const wanted = text.toLowerCase();
  const out: Found[] = asked ? [asked] : [];
  const add = (what: string, name: string, shown: string, href: string) => {
    if (out.length < most && name.toLowerCase().includes(wanted)) out.push({ what, text: shown, href });
  };

  for (const o of model.chart.operators) {
    add(o.kind === "ServiceAccount" ? "operator" : o.kind.toLowerCase(), o.label, o.label, beside({ panel: "operator", operator: o.label }));
  }
  for (const s of model.chart.scopes) add("scope", s.name, s.name, beside({ panel: "scope", scope: s.name }));

  // A name that is the same comes before names that hold it.
  const names = [...model.rows, ...model.chart.unserved].filter((n) => n.toLowerCase().includes(wanted));
  names.sort((a, b) => Number(b === wanted) - Number(a === wanted) || Number(b.startsWith(wanted)) - Number(a.startsWith(wanted)));
  for (const n of names.slice(0, most)) add("namespace", n, placeName(n), beside({ panel: "namespace", namespace: n }));

  return [...out, ...about(text), ...person(text)];
}

/** plain leaves out the words that a question can do without. */
function plain(text: string): string {
  return text
    .replace(/\s+(?:the|an?)(?=\s)/gi, "")
    .replace(/\s+(?:in|of)\s+namespace\s+(?=\S)/i, " in ")
    .replace(/\s+of\s+(\S+)$/i, " in $1");
}

/**
 * question reads what is asked: who may VERB RESOURCE in NAMESPACE, or may NAMESPACE/ACCOUNT VERB RESOURCE in NAMESPACE. About
 * somebody else, the answer is among those who may.
 */
export function question(asked: string): Found | null {
  const text = plain(asked);
  const who = /^who\s+(?:may|can)\s+(\S+)\s+(\S+?)(?:\s+(?:everywhere|in\s+(?:whole\s+cluster|all\s+namespaces|(\S+))))?$/i.exec(text);
  if (who) return whoMay(...meant(who[1], who[2], who[3]));

  const may = /^(?:why\s+)?(?:may|can)\s+(\S+)\s+(\S+)\s+(\S+)\s+in\s+(\S+)$/i.exec(text);
  if (may && !may[1]?.includes("/")) return whoMay(...meant(may[2], may[3], may[4]));
  if (may) {
    const [verb, resource, namespace] = meant(may[2], may[3], may[4]);
    const operator = may[1] ?? "";

    return { what: "question", text: `May ${operator} ${verb} ${resource} in ${namespace}?`, href: beside({ panel: "rights", operator, verb, resource, namespace }) };
  }

  return null;
}

function whoMay(verb: string, resource: string, namespace: string): Found {
  return { what: "question", text: `Who may ${verb} ${resource} in ${placeName(namespace)}?`, href: beside({ panel: "who", verb, resource, namespace }) };
}

/** Resources that a word alone is taken for; one of a group has a dot in its name. */
const resources = /^(secret|configmap|pod|deployment|statefulset|daemonset|job|cronjob|service|ingresse|role|rolebinding|clusterrole|clusterrolebinding|serviceaccount|namespace|node|persistentvolumeclaim|persistentvolume|customresourcedefinition)s$|^[a-z][a-z0-9-]*\.[a-z0-9.-]*[a-z0-9]$/;

/** about are questions about a resource that is named alone, first about the namespace that is open. */
function about(word: string): Found[] {
  const resource = word.toLowerCase();
  if (!resources.test(resource)) return [];
  const { namespace } = route();

  return [...(namespace ? [namespace] : []), ""].flatMap((n) => [whoMay("get", resource, n), whoMay("create", resource, n)]);
}

/** person is a question about a name that somebody may have. The page has no list of people, so it asks once it is chosen. */
function person(text: string): Found[] {
  const name = /^(?:what\s+(?:may|can)\s+(\S+)\s+do|who\s+is\s+(\S+)|([^\s?]{2,}))$/i.exec(text)?.slice(1).find(Boolean);

  return name ? [{ what: "person", text: `Who is called ${name}?`, href: beside({ panel: "person", name }) }] : [];
}

function meant(verb = "", resource = "", namespace = ""): [string, string, string] {
  const v = verb.toLowerCase();

  return [verbs[v] ?? v, resource.toLowerCase(), namespace.toLowerCase()];
}

/** search makes the field work: a combobox, as the ARIA practices have it. */
export function search(model: () => Model | null): void {
  const field = the<HTMLInputElement>("search");
  const list = the("found");
  let found: Found[] = [];
  let at = -1;

  const show = (isOpen: boolean) => {
    list.hidden = !isOpen || field.value.trim() === "";
    field.setAttribute("aria-expanded", String(!list.hidden));
    const options = found.map((f, n) =>
      el("li", { role: "option", id: `found-${n}`, "aria-selected": n === at ? "true" : "false", mousedown: (event) => { event.preventDefault(); choose(n); } },
        el("span", { class: "what" }, f.what), el("span", {}, short(f.text, 90))));
    fill(list, ...(options.length > 0 ? options : [el("li", { role: "option", class: "dim", "aria-disabled": "true", "aria-selected": "false" }, "Nothing that you may see is called so. Try: who may read Secrets in payments?")]));
    if (at >= 0) field.setAttribute("aria-activedescendant", `found-${at}`);
    else field.removeAttribute("aria-activedescendant");
  };
  const choose = (n: number) => {
    const chosen = found[n];
    if (!chosen) return;
    location.hash = chosen.href;
    field.value = "";
    show(false);
  };

  field.addEventListener("input", () => {
    const m = model();
    found = m ? find(m, field.value) : [];
    at = found.length > 0 ? 0 : -1;
    show(true);
  });
  field.addEventListener("blur", () => show(false));
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      at = found.length === 0 ? -1 : (at + (event.key === "ArrowDown" ? 1 : found.length - 1)) % found.length;
      show(true);
      event.preventDefault();
    } else if (event.key === "Enter") choose(at);
    else if (event.key === "Escape") {
      field.value = "";
      show(false);
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    field.focus();
  });
}
