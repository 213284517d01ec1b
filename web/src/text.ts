// What comes from a cluster may hold anything. What does not show itself, or changes how something else shows, is written as an escape
// sequence: the rules are those of internal/printable.

const hidden = /[^\p{L}\p{N}\p{P}\p{S} ]|\p{Default_Ignorable_Code_Point}|\u2800|\uFFFD/gu;

function sequence(char: string): string {
  const known: Record<string, string> = { "\n": "\\n", "\t": "\\t", "\r": "\\r" };
  const code = char.codePointAt(0) ?? 0;

  return known[char] ?? (code > 0xffff ? "\\U" + code.toString(16).padStart(8, "0") : "\\u" + code.toString(16).padStart(4, "0"));
}

/** printable is a string of a cluster in one line, as what it is. */
export function printable(text: string): string {
  return text.replace(hidden, sequence);
}

/** short is a text of so many characters at most; the middle is left out, because names differ at their ends. */
export function short(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const tail = Math.floor((limit - 1) / 3);

  return text.slice(0, limit - 1 - tail) + "…" + text.slice(text.length - tail);
}

const digits = new Intl.NumberFormat("en");

/** count is a number and what it counts, as "1 namespace" or "10,000 namespaces". */
export function count(n: number, what: string): string {
  return `${digits.format(n)} ${what}${n === 1 ? "" : "s"}`;
}

/** quoted is a word of a command for a shell. */
export function quoted(word: string): string {
  return /^[A-Za-z0-9@%+=:,./_-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'";
}
