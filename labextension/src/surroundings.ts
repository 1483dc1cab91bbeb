// Finds the kernel's lines and cells in the notebooks of the page.
//
// Input: lines and cells, as the kernel names them. Output: the cursor at the line, the cell in view.

import type { JupyterFrontEnd } from "@jupyterlab/application";
import type { Cell, ICodeCellModel } from "@jupyterlab/cells";
import type { TranslationBundle } from "@jupyterlab/translation";

import { cells } from "./badges.ts";
import type { UserLine } from "./generated/displays.ts";
import type { Link } from "./link.ts";
import type { Links, Place } from "./links.ts";
import type { Marks } from "./marks.ts";

/** Finds things in the notebooks and consoles that a kernel runs. */
export class Notebooks {
  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly links: Links,
    private readonly marks: Marks,
    private readonly trans: TranslationBundle,
  ) {}

  /** Puts the cursor to a line, in the notebook that holds it. */
  async reveal(link: Link, where: UserLine): Promise<void> {
    const cell = link.model.cellOf(where.file);
    await this.revealCell(link, cell);
    const [found] = this.marks.find(cell, where.file, where.line);
    if (found) {
      found.view.focus();
      found.view.dispatch({ selection: { anchor: found.pos }, scrollIntoView: true });
    }
  }

  /** Brings a cell into view; does nothing if it no longer exists. */
  async revealCell(link: Link, id: string): Promise<void> {
    const found = this.find(link, id);
    if (found === null) {
      return;
    }
    const { place, cell } = found;
    this.app.shell.activateById(place.id);
    if (!("console" in place)) {
      place.content.activeCellIndex = place.content.widgets.indexOf(cell);
      await place.content.scrollToCell(cell, "smart");
    } else {
      cell.node.scrollIntoView({ block: "nearest" });
    }
  }

  /** Returns a cell's name: its execution count, or its position. */
  cellName(link: Link, id: string): string {
    const found = this.find(link, id);
    if (found === null) {
      return id.startsWith("In[") ? this.trans.__("Cell %1", id.slice(2)) : this.trans.__("A cell that is gone");
    }
    const count = (found.cell.model as ICodeCellModel).executionCount;
    const title = found.place.title.label;
    const name = count === null ? this.trans.__("Cell %1", found.number) : this.trans.__("Cell [%1]", count);
    return this.links.placesOf(link).length > 1 ? `${name}, ${title}` : name;
  }

  private find(link: Link, id: string): { place: Place; cell: Cell; number: number } | null {
    const places = this.links.placesOf(link);
    const front = this.links.currentPlace;
    for (const place of places.sort((a, b) => Number(b === front) - Number(a === front))) {
      const all = cells(place);
      const number = all.findIndex((cell) => cell.model.id === id);
      if (number >= 0) {
        return { place, cell: all[number]!, number: number + 1 };
      }
    }
    return null;
  }
}
