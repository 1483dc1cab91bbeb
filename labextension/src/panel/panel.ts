// The side panel: one kernel at a time, its functions, graphs, recompiles and kernels in four tabs.
//
// Input: the links, and which notebook or console is in front. Output: the panel. It draws when something has changed,
// at most a few times a second, and only while it is seen.

import type { TranslationBundle } from "@jupyterlab/translation";
import { Signal } from "@lumino/signaling";
import type { Message } from "@lumino/messaging";
import { Widget } from "@lumino/widgets";

import { h } from "../dom.ts";
import type { UserLine } from "../generated/displays.ts";
import type { Link } from "../link.ts";
import type { Links } from "../links.ts";
import { StanceChooser } from "../stances.ts";
import { mismatched } from "../words.ts";
import { Functions } from "./functions.ts";
import { Graphs } from "./graphs.ts";
import { History } from "./history.ts";
import { Kernels } from "./kernels.ts";
import type { Choice, Frame, Section } from "./section.ts";

/** Milliseconds between two drawings, at least; and how many times as long as a drawing took. */
const REST = 150;
const TIMES = 12;

/** What the panel needs of the notebooks. */
export interface Surroundings {
  reveal(link: Link, where: UserLine): void;
  revealCell(link: Link, cell: string): void;
  cellName(link: Link, cell: string): string;
  about(reason: string): void;
}

type Tab = "functions" | "graph" | "history" | "kernels";

/** The panel. */
export class Panel extends Widget implements Frame {
  readonly seen = new Signal<this, boolean>(this);
  choice: Choice | null = null;
  private tab: Tab = "functions";
  private readonly sections: Record<Tab, Section>;
  private readonly functions: Functions;
  private readonly tabs: Record<Tab, HTMLElement>;
  private readonly place: HTMLElement;
  private readonly line = h("div", { class: "tc-notice", role: "status" });
  private readonly stance: StanceChooser;
  private waiting = 0;
  private rest = REST;

  constructor(
    private readonly links: Links,
    readonly trans: TranslationBundle,
    private readonly around: Surroundings,
  ) {
    super();
    this.addClass("tc-panel");
    this.functions = new Functions(this);
    this.sections = {
      functions: this.functions,
      graph: new Graphs(this),
      history: new History(this),
      kernels: new Kernels(this),
    };
    this.stance = new StanceChooser(links, () => this.link, trans);
    const names: [Tab, string][] = [
      ["functions", trans.__("Functions")],
      ["graph", trans.__("Graph")],
      ["history", trans.__("Recompiles")],
      ["kernels", trans.__("Kernels")],
    ];
    const made = names.map(([tab, name]) => [tab, this.button(tab, name)] as const);
    this.tabs = Object.fromEntries(made) as Record<Tab, HTMLElement>;
    const bar = h("div", { class: "tc-tabs", role: "tablist", "aria-label": "tcompile" }, ...Object.values(this.tabs));
    bar.addEventListener("keydown", (event) => this.key(event));
    this.place = h("div", { class: "tc-place", role: "tabpanel", id: `${TAB}place` });
    this.node.append(h("div", { class: "tc-head" }, this.stance.node), this.line, bar, this.place);
    links.news.connect((_, { link, change }) => {
      if (link === this.link && (change.functions || change.cells.size || change.stance)) {
        this.later();
      }
    });
    links.changed.connect(() => this.later());
    this.open("functions");
  }

  get link(): Link | null {
    return this.links.current;
  }

  go(tab: "graph" | "kernels", choice: Choice): void {
    this.choice = choice;
    this.open(tab);
  }

  reveal(where: UserLine): void {
    this.link && this.around.reveal(this.link, where);
  }

  revealCell(cell: string): void {
    this.link && this.around.revealCell(this.link, cell);
  }

  cellName(cell: string): string {
    return this.link ? this.around.cellName(this.link, cell) : cell;
  }

  about(reason: string): void {
    this.around.about(reason);
  }

  /** Shows the functions of a cell. */
  showCell(cell: string): void {
    this.open("functions");
    this.functions.showCell(cell);
  }

  /** The cursor has reached a line of the user's. */
  cursor(file: string, line: number): void {
    if (this.isVisible) {
      this.sections[this.tab].cursor?.(file, line);
    }
  }

  /** Requests the current counts: cache hits emit no events. */
  async count(): Promise<void> {
    const { link } = this;
    if (this.isVisible && link?.connected) {
      const answer = await link.ask({ ask: "functions" });
      link.model.count(answer.functions ?? []);
    }
  }

  /** Opens a tab. */
  open(tab: Tab): void {
    this.tab = tab;
    for (const [name, button] of Object.entries(this.tabs)) {
      button.setAttribute("aria-selected", String(name === tab));
      button.tabIndex = name === tab ? 0 : -1;
    }
    this.place.setAttribute("aria-labelledby", TAB + tab);
    this.place.replaceChildren(this.sections[tab].node);
    this.draw();
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.seen.emit(true);
    void this.count();
    this.draw();
  }

  protected override onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this.seen.emit(false);
  }

  private button(tab: Tab, name: string): HTMLElement {
    const click = (): void => this.open(tab);
    return h("button", { type: "button", role: "tab", id: TAB + tab, "aria-controls": `${TAB}place`, click }, name);
  }

  private key(event: KeyboardEvent): void {
    const names = Object.keys(this.tabs) as Tab[];
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step !== undefined) {
      const next = names[(names.indexOf(this.tab) + step + names.length) % names.length]!;
      this.open(next);
      this.tabs[next].focus();
      event.preventDefault();
    }
  }

  private later(): void {
    if (!this.waiting) {
      this.waiting = window.setTimeout(() => {
        this.waiting = 0;
        const began = performance.now();
        this.draw();
        this.rest = Math.max(REST, TIMES * (performance.now() - began));
      }, this.rest);
    }
  }

  private draw(): void {
    if (!this.isVisible) {
      return;
    }
    const { link } = this;
    const line = link?.connected ? mismatched(this.trans, link.model) : this.lacking();
    if (this.line.textContent !== line) {
      this.line.textContent = line;
    }
    this.place.hidden = !link?.connected;
    if (link?.connected) {
      this.sections[this.tab].draw();
    }
  }

  private lacking(): string {
    const kernel = this.links.currentPlace?.sessionContext.session?.kernel;
    return kernel
      ? this.trans.__("This kernel has not loaded tcompile: run %load_ext tcompile in a cell.")
      : this.trans.__("No notebook with a running kernel is in front.");
  }
}

const TAB = "tc-tab-";
