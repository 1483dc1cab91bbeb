// The badge under each cell that compiled something.
//
// Input: what the models know of each cell, and what the cell's own report has measured. Output: a line of figures
// under the cell; a click opens the details. A cell that has been edited since says so.

import type { Cell, ICodeCellModel } from "@jupyterlab/cells";
import type { TranslationBundle } from "@jupyterlab/translation";
import type { PanelLayout } from "@lumino/widgets";
import { Widget } from "@lumino/widgets";

import { h } from "./dom.ts";
import type { Links, Place } from "./links.ts";
import type { CellSummary } from "./protocol.ts";
import { counts, time } from "./words.ts";

const REPORT = "application/vnd.tcompile.report+json";

/** The badges of all cells of this page. */
export class Badges {
  private readonly badges = new WeakMap<Cell, Badge>();
  private readonly followed = new WeakSet<object>();
  private shown = true;

  constructor(
    private readonly links: Links,
    private readonly trans: TranslationBundle,
    private readonly open: (cell: string) => void,
  ) {
    links.news.connect((_, { link, change }) => {
      for (const place of links.placesOf(link)) {
        for (const cell of cells(place)) {
          if (change.cells.has(cell.model.id)) {
            this.update(cell);
          }
        }
      }
    });
    links.changed.connect(() => this.refresh());
  }

  /** Shows or hides all badges. */
  show(shown: boolean): void {
    this.shown = shown;
    this.refresh();
  }

  /** Updates the badges of all cells of all notebooks and consoles. */
  refresh(): void {
    for (const place of this.links.places) {
      this.follow(place);
      cells(place).forEach((cell) => this.update(cell));
    }
  }

  /** Adds badges to cells that appear later, by a paste, a move or an undo. */
  private follow(place: Place): void {
    if ("content" in place && "model" in place.content && place.content.model !== null) {
      const list = place.content.model.cells;
      if (!this.followed.has(list)) {
        this.followed.add(list);
        list.changed.connect(() => requestAnimationFrame(() => cells(place).forEach((cell) => this.update(cell))));
      }
    }
  }

  private update(cell: Cell): void {
    if (cell.isDisposed || cell.model.type !== "code") {
      return;
    }
    const model = cell.model as ICodeCellModel;
    const summary = this.shown ? this.links.ofCell(model)?.model.cells.get(model.id) : undefined;
    let badge = this.badges.get(cell);
    if (summary === undefined || isEmpty(summary)) {
      badge?.dispose();
      this.badges.delete(cell);
      return;
    }
    if (badge === undefined) {
      badge = new Badge(model, this.trans, () => this.open(model.id));
      this.badges.set(cell, badge);
      void this.place(cell, badge);
    }
    badge.tell(summary);
  }

  /** Puts a badge below all parts of its cell, which are made when the cell first comes into view. */
  private async place(cell: Cell, badge: Badge): Promise<void> {
    await cell.ready;
    if (!cell.isDisposed && !badge.isDisposed) {
      (cell.layout as PanelLayout).addWidget(badge);
    }
  }
}

/** One badge. */
class Badge extends Widget {
  private readonly button: HTMLButtonElement;
  private summary: CellSummary | null = null;
  private waiting = 0;

  constructor(
    private readonly model: ICodeCellModel,
    private readonly trans: TranslationBundle,
    open: () => void,
  ) {
    const button = h("button", { type: "button", class: "tc-badge", click: open });
    super({ node: h("div", { class: "tc-badge-line" }, button) });
    this.button = button;
    model.sharedModel.changed.connect(this.edited, this);
    model.outputs.changed.connect(this.reported, this);
  }

  /** Shows the figures of the cell's last run that compiled something. */
  tell(summary: CellSummary): void {
    const same = this.summary?.began === summary.began;
    const faster = speedUp(this.model);
    this.summary = summary;
    if (!same) {
      this.button.classList.remove("tc-stale");
    }
    const say = counts(this.trans);
    const parts: [string, string][] = [[summary.graphs ? "graphs" : "plain", this.graphs(summary)]];
    if (summary.breaks) {
      parts.push(["breaks", say.breaks(summary.breaks)]);
    }
    if (summary.recompiles) {
      parts.push(["recompiles", say.recompiles(summary.recompiles)]);
    }
    if (summary.compile_ms) {
      parts.push(["ms", this.trans.__("%1 compiling", time(summary.compile_ms))]);
    }
    if (faster !== null) {
      parts.push(faster);
    }
    const text = parts.map(([, part]) => part).join(", ");
    this.button.setAttribute("aria-label", this.trans.__("tcompile: %1. Open the details", text));
    this.button.title = this.trans.__("Open the details of this cell");
    this.button.replaceChildren(
      h("span", { class: "tc-dot" }),
      ...parts.map(([kind, part]) => h("span", { class: `tc-figure tc-${kind}` }, part)),
    );
  }

  private graphs(summary: CellSummary): string {
    return summary.graphs ? counts(this.trans).graphs(summary.graphs) : this.trans.__("plain Python");
  }

  private edited(_: unknown, change: { sourceChange?: unknown }): void {
    if (change.sourceChange) {
      this.button.classList.add("tc-stale");
      this.button.title = this.trans.__("The cell has been edited since");
    }
  }

  /** The report of the cell, which has the speed-up, may arrive after everything else; many outputs need one update. */
  private reported(): void {
    this.waiting ||= requestAnimationFrame(() => {
      this.waiting = 0;
      this.summary && this.tell(this.summary);
    });
  }

  override dispose(): void {
    cancelAnimationFrame(this.waiting);
    this.model.sharedModel.changed.disconnect(this.edited, this);
    this.model.outputs.changed.disconnect(this.reported, this);
    super.dispose();
  }
}

/** The cells of a notebook, or of a console with its prompt. */
export function cells(place: Place): readonly Cell[] {
  if ("console" in place) {
    const { cells, promptCell } = place.console;
    return [...cells, ...(promptCell ? [promptCell] : [])] as readonly Cell[];
  }
  return place.content.widgets;
}

function isEmpty(summary: CellSummary): boolean {
  return !summary.graphs && !summary.breaks && !summary.recompiles;
}

/** Returns the tone of the speed-up and its words, if the cell's report has measured it. */
function speedUp(model: ICodeCellModel): [string, string] | null {
  for (let n = 0; n < model.outputs.length; n += 1) {
    const data: unknown = model.outputs.get(n).data[REPORT];
    const rows: unknown = (data as { comparison?: { rows?: unknown } } | undefined)?.comparison?.rows;
    const row: unknown = Array.isArray(rows) ? rows[0] : undefined;
    const { speed, tone } = (row ?? {}) as { speed?: unknown; tone?: unknown };
    if (typeof speed === "string" && speed !== "") {
      return [tone === "good" ? "faster" : tone === "warn" ? "slower" : "same", speed];
    }
  }
  return null;
}
