// The functions of the kernel, cell by cell.
//
// Input: the model. Output: for each function its entries with guards, hits and timings, and its graph breaks; buttons
// that go to the graph, the kernels, the cell and the line.

import { code, h, keep } from "../dom.ts";
import type { EntryView, GraphBreakView } from "../generated/displays.ts";

import { CELL } from "../model.ts";
import type { FunctionState } from "../protocol.ts";
import { short, time } from "../words.ts";
import { entryName, folded, guarded, lineButton, note } from "./section.ts";
import type { Frame, Section } from "./section.ts";

/** Functions that are listed; of more, the newest. */
const MOST = 200;

/** The rows under one cell's name. */
interface Group {
  node: HTMLElement;
  heading: HTMLElement;
}

/** The section. Unchanged rows are not drawn again: there may be hundreds of functions. */
export class Functions implements Section {
  readonly node = h("div", { class: "tc-section" });
  private readonly open = new Set<string>(); // what the user has unfolded, kept when it is drawn again
  private readonly groups = new Map<string, Group>();
  private drawn = new WeakMap<FunctionState, HTMLElement>();
  private readonly empty: HTMLElement;
  private cell = "";

  constructor(private readonly frame: Frame) {
    this.empty = note(frame.trans.__("Nothing has been compiled yet."));
  }

  /** Unfolds the functions of a cell, and brings them into view. */
  showCell(cell: string): void {
    this.cell = cell;
    for (const state of this.frame.link?.model.functions.values() ?? []) {
      if (this.cellOf(state) === cell) {
        this.open.add(`f${state.number}`);
        this.drawn.delete(state);
      }
    }
    this.draw();
    this.node.querySelector(".tc-cell-chosen")?.scrollIntoView({ block: "nearest" });
  }

  draw(): void {
    const states = [...(this.frame.link?.model.functions.values() ?? [])].slice(-MOST).reverse();
    const byCell = new Map<string, FunctionState[]>();
    for (const state of states) {
      const cell = this.cellOf(state);
      const held = byCell.get(cell);
      held ? held.push(state) : byCell.set(cell, [state]);
    }
    for (const cell of [...this.groups.keys()].filter((cell) => !byCell.has(cell))) {
      this.groups.delete(cell);
    }
    const groups = [...byCell].map(([cell, held]) => {
      const { node, heading } = this.group(cell);
      keep(node, [heading, ...held.map((state) => this.made(state))]);
      return node;
    });
    keep(this.node, groups.length ? groups : [this.empty]);
  }

  private cellOf(state: FunctionState): string {
    return state.view.defined_in ?? "";
  }

  private group(cell: string): Group {
    const group = this.groups.get(cell) ?? { node: h("section", { class: "tc-cell" }), heading: this.heading(cell) };
    this.groups.set(cell, group);
    group.node.classList.toggle("tc-cell-chosen", cell !== "" && cell === this.cell);
    const button = group.heading.querySelector("button");
    const name = button === null ? "" : this.frame.cellName(cell);
    if (button !== null && button.textContent !== name) {
      button.textContent = name;
    }
    return group;
  }

  private heading(cell: string): HTMLElement {
    const { frame } = this;
    if (cell === "") {
      return h("h3", {}, frame.trans.__("Other files"));
    }
    const click = (): void => frame.revealCell(cell);
    const title = frame.trans.__("Go to this cell");
    return h("h3", {}, h("button", { type: "button", class: "tc-link", title, click }));
  }

  private made(state: FunctionState): HTMLElement {
    const made = this.drawn.get(state) ?? guarded(this.frame, () => this.function(state));
    this.drawn.set(state, made);
    return made;
  }

  private folded(key: string, summary: (string | HTMLElement)[], inside: () => (HTMLElement | null)[]): HTMLElement {
    const opens = (open: boolean): void => void (open ? this.open.add(key) : this.open.delete(key));
    return folded(this.frame, summary, this.open.has(key), inside, opens);
  }

  private function({ number, view }: FunctionState): HTMLElement {
    const { trans } = this.frame;
    const hits = view.entries.reduce((sum, entry) => sum + entry.hits, 0);
    const compiled = view.entries.filter((entry) => entry.state === "compiled" && entry.ops > 0);
    const [own, breaks] = [view.name === CELL, view.breaks.length];
    const interrupted = own
      ? trans._n("%1 statement in plain Python", "%1 statements in plain Python", breaks)
      : trans._n("%1 break", "%1 breaks", breaks);
    const figures = [
      compiled.length ? trans._n("%1 graph", "%1 graphs", compiled.length) : trans.__("plain Python"),
      ...(breaks ? [interrupted] : []),
      ...(view.recompiles.length ? [trans._n("%1 recompile", "%1 recompiles", view.recompiles.length)] : []),
      trans._n("%1 hit", "%1 hits", hits),
    ];
    const state = breaks && !own ? "broken" : compiled.length ? "captured" : "plain";
    const name = own ? trans.__("the cell's statements from line %1", view.where.line) : short(view.name, 60);
    const settings = [trans.__("backend %1", view.backend), ...view.settings, trans.__("calls %1", view.calls)];
    return this.folded(
      `f${number}`,
      [h("span", { class: `tc-bar tc-${state}` }), h("b", {}, name), " ", dim(figures.join(" · "))],
      () => [
        note(settings.join(" · ")),
        lineButton(this.frame, view.where),
        ...view.breaks.map((broke) => this.broke(broke, own ? trans.__("plain Python") : trans.__("break"))),
        ...view.entries.map((entry) => this.entry(number, entry)),
        view.eager_calls
          ? note(trans._n("%1 call in plain Python", "%1 calls in plain Python", view.eager_calls))
          : null,
      ],
    );
  }

  private broke(broke: GraphBreakView, what: string): HTMLElement {
    const { frame } = this;
    const where = broke.stack[broke.stack.length - 1];
    const about = (): void => frame.about(broke.reason);
    return h(
      "div",
      { class: "tc-break" },
      h("div", {}, h("b", {}, what), ` ${broke.headline}`),
      where ? lineButton(frame, where) : null,
      h("div", { class: "tc-dim" }, ...code(broke.explanation)),
      ...broke.hints.map((hint) => h("div", { class: "tc-hint" }, ...code(hint))),
      h("button", { type: "button", class: "tc-link", click: about }, frame.trans.__("More about this reason")),
    );
  }

  private entry(number: number, entry: EntryView): HTMLElement {
    const { frame } = this;
    const { trans } = frame;
    const choice = { number, entry: entry.number };
    const figures = [
      trans._n("%1 op", "%1 ops", entry.ops),
      trans._n("%1 hit", "%1 hits", entry.hits),
      time(entry.compile_ms),
    ];
    const kernel = (name: string): HTMLElement =>
      h(
        "button",
        { type: "button", class: "tc-link", click: () => frame.go("kernels", { ...choice, kernel: name }) },
        h("code", {}, short(name, 40)),
      );
    const graph = (): HTMLElement =>
      h(
        "div",
        { class: "tc-row" },
        h(
          "button",
          { type: "button", class: "tc-button", click: () => frame.go("graph", choice) },
          trans.__("Show the graph"),
        ),
        ...entry.kernels.map(kernel),
      );
    return this.folded(
      `e${number}/${entry.number}`,
      [entryName(frame, entry), " ", dim(entry.state === "plain" ? trans.__("plain Python") : figures.join(" · "))],
      () => [
        note(trans.__("from %1 to %2", entry.starts, entry.ends)),
        h("div", { class: "tc-label" }, trans.__("holds while")),
        h("ul", { class: "tc-guards" }, ...entry.guards.slice(0, 200).map((text) => h("li", {}, h("code", {}, text)))),
        this.phases(entry),
        entry.ops ? graph() : null,
      ],
    );
  }

  private phases({ phases, compile_ms: all }: EntryView): HTMLElement | null {
    const spent = Object.entries(phases).filter(([, ms]) => ms > 0);
    const sum = spent.reduce((total, [, ms]) => total + ms, 0);
    if (!spent.length || !sum) {
      return null;
    }
    return h(
      "div",
      { class: "tc-phases" },
      h("div", { class: "tc-label" }, this.frame.trans.__("compiled in %1", time(all))),
      ...spent.map(([name, ms]) =>
        h(
          "div",
          { class: "tc-phase" },
          h("span", {}, name),
          h("span", { class: "tc-meter", style: `--tc-part:${(ms / sum).toFixed(3)}` }),
          h("span", { class: "tc-number" }, time(ms)),
        ),
      ),
    );
  }
}

function dim(text: string): HTMLElement {
  return h("span", { class: "tc-dim" }, text);
}
