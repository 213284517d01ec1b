// The matrix: namespaces down, operators across. Only what is in sight is drawn, on a canvas of the size of the window, so that the number
// of namespaces costs nothing. A reader of screens has the row in which one is as a table beside it.

import { el, fill, place } from "./dom";
import { Is, Model, none, placeName } from "./model";
import type { State } from "./model";
import { beside, go, route } from "./route";
import { count, printable, short } from "./text";

const cell = 24;
const head = 168;
const side = 230;

interface Row {
  label: string;
  namespace: string;
  block: number;
  many: number;
}

export function matrix(model: Model): HTMLElement {
  const view = new Matrix(model);

  return view.element;
}

class Matrix {
  readonly element: HTMLElement;
  private rows: Row[] = [];
  private columns: number[] = [];
  private at = { row: 0, column: 0 };
  private waiting = false;
  private readonly canvas = document.createElement("canvas");
  private readonly spacer = el("div", { class: "spacer" });
  private readonly scroller: HTMLElement;
  private readonly grid: HTMLElement;
  private readonly summary = el("p", { class: "summary", role: "status" });
  private signs = new Map<string, HTMLCanvasElement>();
  private colors: Record<string, string> = {};

  constructor(private readonly model: Model) {
    this.grid = el("div", {
      class: "grid",
      role: "grid",
      tabindex: 0,
      "aria-label": "Namespaces by operators. Arrow keys move, Enter says why.",
      keydown: (event) => this.key(event as KeyboardEvent),
      focus: () => this.draw(),
      blur: () => this.draw(),
    });
    this.canvas.setAttribute("aria-hidden", "true");
    this.scroller = el("div", { class: "scroller", tabindex: 0, role: "group", "aria-label": "Cells of the matrix", scroll: () => this.later(), click: (event) => this.click(event as MouseEvent) },
      this.spacer, this.canvas);
    this.element = el("div", { class: "matrix" }, this.controls(), this.summary, el("div", { class: "matrix-frame" }, this.scroller, this.grid));
    this.sift();
    new ResizeObserver(() => this.size()).observe(this.scroller);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.theme());
  }

  private controls(): HTMLElement {
    const { filter, only, fold } = route();
    const set = (change: Parameters<typeof go>[0]) => {
      history.replaceState(null, "", location.hash);
      go(change);
    };
    const check = (label: string, isOn: boolean, change: (on: boolean) => Parameters<typeof go>[0]) => {
      const box = el("input", { type: "checkbox" }) as HTMLInputElement;
      box.checked = isOn;
      box.addEventListener("change", () => set(change(box.checked)));

      return el("label", {}, box, label);
    };
    const text = el("input", { type: "search", placeholder: "Filter", "aria-label": "Filter namespaces and operators", value: filter ?? "" }) as HTMLInputElement;
    text.addEventListener("change", () => set({ filter: text.value || undefined }));

    return el(
      "div",
      { class: "controls" },
      text,
      check("Only what is wrong", only === "wrong", (on) => ({ only: on ? "wrong" : undefined })),
      check("Alike namespaces as one row", fold === "yes", (on) => ({ fold: on ? "yes" : undefined })),
    );
  }

  /** sift chooses the rows and columns that are shown. */
  private sift(): void {
    const { model } = this;
    const { filter, only, fold, operator, namespace } = route();
    const wanted = filter?.toLowerCase() ?? "";
    const operators = model.chart.operators.map((o, at) => ({ at, is: wanted !== "" && o.label.toLowerCase().includes(wanted) }));
    const named = operators.some((o) => o.is);
    const isRow = (name: string) => wanted === "" || placeName(name).toLowerCase().includes(wanted);

    this.columns = operators.filter((o) => !named || o.is).map((o) => o.at);
    const inside = (block: number) =>
      (only !== "wrong" || model.isWrong(block)) && (!named || this.columns.some((c) => model.at(block, c) !== 255));

    if (fold === "yes") {
      this.rows = model.chart.blocks.flatMap((b, at) => {
        const first = named ? b.namespaces[0] : b.namespaces.find(isRow);
        if (first === undefined || !inside(at)) return [];
        const many = b.namespaces.length;

        return [{ label: many > 1 ? `${count(many, "namespace")}: ${first}, …` : placeName(first), namespace: first, block: at, many }];
      });
    } else {
      this.rows = model.rows.flatMap((name) => {
        const block = model.blockOf.get(name) ?? 0;
        if (!(named || isRow(name)) || !inside(block)) return [];

        return [{ label: placeName(name), namespace: name, block, many: 1 }];
      });
    }

    if (only === "wrong") {
      this.columns = this.columns.filter((c) => this.rows.some((r) => [Is.failed, Is.partial].includes(model.at(r.block, c))));
    }

    this.at.row = Math.max(0, this.rows.findIndex((r) => r.namespace === namespace));
    this.at.column = Math.max(0, this.columns.indexOf(model.byLabel.get(operator ?? "") ?? -1));
    fill(this.summary, `${count(this.columns.length, "operator")}, ${count(this.rows.length, fold === "yes" ? "row" : "namespace")}`);
    place(this.spacer, { width: side + this.columns.length * cell + 90, height: head + this.rows.length * cell + 8 });
    this.grid.setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.grid.setAttribute("aria-colcount", String(this.columns.length + 1));
    this.speak();
  }

  private theme(): void {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ground", "text", "dim", "line", "accent", "hover"]) this.colors[name] = style.getPropertyValue("--" + name).trim();
    for (const s of [...this.model.chart.states, none]) {
      this.colors[s.state] = style.getPropertyValue("--" + s.state).trim();
      this.colors[s.state + "-ground"] = style.getPropertyValue(`--${s.state}-ground`).trim();
    }
    this.signs.clear();
    this.draw();
  }

  private size(): void {
    const scale = devicePixelRatio;
    const { clientWidth: width, clientHeight: height } = this.scroller;
    this.canvas.width = width * scale;
    this.canvas.height = height * scale;
    place(this.canvas, { width, height });
    this.show();
    this.theme();
  }

  private later(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  private draw(): void {
    const pen = this.canvas.getContext("2d", { alpha: false });
    if (!pen || this.colors["ground"] === undefined) return;
    const { scrollLeft: x0, scrollTop: y0, clientWidth: width, clientHeight: height } = this.scroller;

    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    pen.fillStyle = this.color("ground");
    pen.fillRect(0, 0, width, height);

    const rows = { from: Math.floor(y0 / cell), to: Math.min(this.rows.length, Math.ceil((y0 + height - head) / cell)) };
    const columns = { from: Math.floor(x0 / cell), to: Math.min(this.columns.length, Math.ceil((x0 + width - side) / cell)) };

    pen.save();
    pen.beginPath();
    pen.rect(side, head, width, height);
    pen.clip();
    for (let r = rows.from; r < rows.to; r++) {
      const block = this.rows[r]?.block ?? 0;
      for (let c = columns.from; c < columns.to; c++) {
        const state = this.model.state(block, this.columns[c] ?? 0);
        if (state !== none) pen.drawImage(this.sign(state), side + c * cell - x0, head + r * cell - y0, cell, cell);
      }
    }
    this.cursor(pen, x0, y0);
    pen.restore();
    this.sides(pen, rows, y0, height);
    this.heads(pen, columns, x0, width);
    pen.fillStyle = this.color("ground");
    pen.fillRect(0, 0, side, head);
  }

  private cursor(pen: CanvasRenderingContext2D, x0: number, y0: number): void {
    const x = side + this.at.column * cell - x0;
    const y = head + this.at.row * cell - y0;
    pen.strokeStyle = this.color("accent");
    pen.lineWidth = 2;
    if (document.activeElement === this.grid) pen.strokeRect(x + 1, y + 1, cell - 2, cell - 2);
  }

  private sides(pen: CanvasRenderingContext2D, rows: { from: number; to: number }, y0: number, height: number): void {
    pen.save();
    pen.beginPath();
    pen.rect(0, head, side, height);
    pen.clip();
    pen.font = "13px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (let r = rows.from; r < rows.to; r++) {
      const row = this.rows[r];
      if (!row) continue;
      pen.fillStyle = this.color(this.model.isWrong(row.block) ? "failed" : "text");
      pen.fillText(short(printable(row.label), 32), side - 10, head + r * cell + cell / 2 - y0, side - 18);
    }
    pen.restore();
  }

  private heads(pen: CanvasRenderingContext2D, columns: { from: number; to: number }, x0: number, width: number): void {
    pen.save();
    pen.beginPath();
    pen.rect(side, 0, width, head);
    pen.clip();
    pen.font = "13px system-ui, sans-serif";
    pen.fillStyle = this.color("text");
    pen.textBaseline = "middle";
    for (let c = columns.from; c < columns.to; c++) {
      const o = this.model.chart.operators[this.columns[c] ?? 0];
      pen.save();
      pen.translate(side + c * cell + cell / 2 - x0, head - 8);
      pen.rotate(-Math.PI / 3);
      pen.fillText(short(printable(o?.label ?? ""), 26), 0, 0, head + 4);
      pen.restore();
    }
    pen.restore();
  }

  private color(name: string): string {
    return this.colors[name] ?? "";
  }

  /** sign is a cell with its sign, drawn once. */
  private sign(state: State): HTMLCanvasElement {
    const known = this.signs.get(state.state);
    if (known) return known;

    const image = document.createElement("canvas");
    image.width = image.height = cell * devicePixelRatio;
    const pen = image.getContext("2d");
    if (pen) {
      pen.scale(devicePixelRatio, devicePixelRatio);
      pen.fillStyle = this.color(state.state + "-ground");
      pen.beginPath();
      pen.roundRect(1.5, 1.5, cell - 3, cell - 3, 4);
      pen.fill();
      pen.fillStyle = this.color(state.state);
      pen.font = "600 13px system-ui, sans-serif";
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.fillText(state.sign, cell / 2, cell / 2 + 0.5);
    }
    this.signs.set(state.state, image);

    return image;
  }

  private click(event: MouseEvent): void {
    const box = this.scroller.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const column = Math.floor((x - side + this.scroller.scrollLeft) / cell);
    const row = Math.floor((y - head + this.scroller.scrollTop) / cell);

    if (x < side && y > head && this.rows[row]) {
      this.at.row = row;
      this.open(true);
    } else if (y < head && x > side && this.columns[column] !== undefined) {
      location.hash = beside({ panel: "operator", operator: this.model.chart.operators[this.columns[column] ?? 0]?.label });
    } else if (x > side && y > head && this.rows[row] && this.columns[column] !== undefined) {
      this.at = { row, column };
      this.grid.focus({ preventScroll: true });
      this.speak();
      this.draw();
      this.open(false);
    }
  }

  private open(isRow: boolean): void {
    const row = this.rows[this.at.row];
    const operator = this.model.chart.operators[this.columns[this.at.column] ?? 0]?.label;
    if (!row) return;
    if (isRow) location.hash = beside({ panel: row.many > 1 ? "block" : "namespace", namespace: row.namespace });
    else location.hash = beside({ panel: "cell", operator, namespace: row.namespace });
  }

  private key(event: KeyboardEvent): void {
    const page = Math.max(1, Math.floor((this.scroller.clientHeight - head) / cell) - 1);
    const last = { row: this.rows.length - 1, column: this.columns.length - 1 };
    const all = event.ctrlKey || event.metaKey;
    const moves: Record<string, [number, number]> = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      PageUp: [-page, 0],
      PageDown: [page, 0],
      Home: [all ? -last.row : 0, -last.column],
      End: [all ? last.row : 0, last.column],
    };
    const move = moves[event.key];

    if (event.key === "Enter" || event.key === " ") this.open(false);
    else if (!move) return;
    else {
      this.at.row = Math.max(0, Math.min(last.row, this.at.row + move[0]));
      this.at.column = Math.max(0, Math.min(last.column, this.at.column + move[1]));
      this.show();
      this.speak();
      this.draw();
    }
    event.preventDefault();
  }

  /** show scrolls to where one is. */
  private show(): void {
    const { scroller: s } = this;
    const y = this.at.row * cell;
    const x = this.at.column * cell;
    const height = s.clientHeight - head;
    const width = s.clientWidth - side;
    if (y < s.scrollTop) s.scrollTop = y;
    else if (y + cell > s.scrollTop + height) s.scrollTop = y + cell - height;
    if (x < s.scrollLeft) s.scrollLeft = x;
    else if (x + cell > s.scrollLeft + width) s.scrollLeft = x + cell - width;
  }

  /** speak says the row in which one is to readers of screens. */
  private speak(): void {
    const row = this.rows[this.at.row];
    if (!row) {
      fill(this.grid, el("div", { role: "row" }, el("span", { role: "gridcell" }, "nothing is shown")));
      this.grid.removeAttribute("aria-activedescendant");

      return;
    }

    fill(
      this.grid,
      el(
        "div",
        { role: "row", "aria-rowindex": this.at.row + 2 },
        el("span", { role: "rowheader", "aria-colindex": 1 }, row.label),
        ...this.columns.map((c, at) =>
          el(
            "span",
            { role: "gridcell", id: `cell-${at}`, "aria-colindex": at + 2, "aria-selected": at === this.at.column ? "true" : "false" },
            `${this.model.chart.operators[c]?.label ?? ""} in ${row.label}: ${this.model.state(row.block, c).word}`,
          ),
        ),
      ),
    );
    this.grid.setAttribute("aria-activedescendant", `cell-${this.at.column}`);
  }
}
