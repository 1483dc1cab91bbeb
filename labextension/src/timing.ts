// The times of lines in the editors of cells: a bar in the gutter, and what a hover says.
//
// Input: the outputs of the notebooks' cells. Output: a gutter in cells that a profile knows, with a bar for each line, as
// long as the line's share, in the three colours of `times`. Bars move with their code, and go when it changes.

import { Compartment, RangeSet, StateEffect, StateField } from "@codemirror/state";
import type { EditorState, Extension } from "@codemirror/state";
import { EditorView, GutterMarker, ViewPlugin, gutter } from "@codemirror/view";
import type { ICodeCellModel } from "@jupyterlab/cells";
import type { INotebookModel } from "@jupyterlab/notebook";
import type { TranslationBundle } from "@jupyterlab/translation";

import { code, h } from "./dom.ts";
import type { Links } from "./links.ts";
import { locate, moved } from "./placing.ts";
import type { Spot } from "./placing.ts";
import type { Mark } from "./protocol.ts";
import { KINDS, timedLines, total } from "./times.ts";
import type { TimedLine } from "./times.ts";
import { time } from "./words.ts";

/** A line, and what is said of its time. */
interface Told {
  line: TimedLine;
  words: string;
}

interface Shown {
  spots: Spot[];
  lines: Map<number, Told>; // by the line of the editor
  bars: RangeSet<GutterMarker>;
}

interface Editor {
  view: EditorView;
  model: ICodeCellModel;
}

const setTimes = StateEffect.define<Told[]>();
const timed = new WeakMap<Mark, Told>();

/** The times of all editors of this page. */
export class Timing {
  private readonly editors = new Set<Editor>();
  private known = new WeakMap<INotebookModel, Map<string, TimedLine[]>>();
  private shown = true;

  constructor(
    private readonly links: Links,
    private readonly trans: TranslationBundle,
  ) {}

  /** Shows or hides all times. */
  show(shown: boolean): void {
    this.shown = shown;
    this.refresh();
  }

  /** Reads the outputs again, for all editors. */
  refresh(): void {
    this.known = new WeakMap();
    this.editors.forEach((editor) => this.update(editor));
  }

  /** The extension of the editor of a cell. */
  extension(model: ICodeCellModel): Extension {
    const register = ViewPlugin.define((view) => {
      const editor = { view, model };
      this.editors.add(editor);
      queueMicrotask(() => this.update(editor));
      return { destroy: () => void this.editors.delete(editor) };
    });
    return [field, gutters.of([]), register];
  }

  /** What a hover says of a line of the editor; null where no profile knows it. */
  about(state: EditorState, line: number): HTMLElement | null {
    const found = state.field(field, false)?.lines.get(line);
    if (found === undefined) {
      return null;
    }
    const parts = found.line.causes.flatMap(({ text, cure }) => [
      h("div", {}, ...code(text)),
      cure && h("div", { class: "tc-hint" }, ...code(cure)),
    ]);
    return h("div", { class: "tc-hover-time" }, h("div", { class: "tc-hover-ms" }, found.words), ...parts);
  }

  private sentence({ time: line, share, of }: TimedLine): string {
    const names = {
      fused: this.trans.__("fused"),
      library: this.trans.__("library"),
      plain: this.trans.__("plain Python"),
    };
    const kinds = KINDS.filter((kind) => line[kind] > 0).map((kind) => `${names[kind]} ${time(line[kind])}`);
    const percent = (share * 100).toFixed(share < 0.1 ? 1 : 0);
    return this.trans.__("%1, %2% of %3: %4", time(total(line)), percent, of, kinds.join(", "));
  }

  private update({ view, model }: Editor): void {
    const lines = this.shown ? (this.ofNotebook(model)?.get(model.id) ?? []) : [];
    if (lines.length === 0 && view.state.field(field, false)?.spots.length === 0) {
      return;
    }
    const told = lines.map((line) => ({ line, words: this.sentence(line) }));
    const effects = [setTimes.of(told), gutters.reconfigure(lines.length > 0 ? column : [])];
    view.dispatch({ effects });
  }

  private ofNotebook(model: ICodeCellModel): Map<string, TimedLine[]> | undefined {
    const place = this.links.placeOf(model);
    const notebook = place !== null && "content" in place && "model" in place.content ? place.content.model : null;
    if (notebook === null) {
      return undefined;
    }
    const known = this.known.get(notebook) ?? timedLines(outputs(notebook));
    this.known.set(notebook, known);
    return known;
  }
}

/** The data of all outputs of a notebook, in the order of the runs. */
function outputs(notebook: INotebookModel): Record<string, unknown>[] {
  const cells = [...notebook.cells].filter((cell): cell is ICodeCellModel => cell.type === "code");
  cells.sort((a, b) => (a.executionCount ?? 0) - (b.executionCount ?? 0));
  return cells.flatMap(({ outputs: list }) => Array.from({ length: list.length }, (_, n) => list.get(n).data));
}

class TimeBar extends GutterMarker {
  private readonly told: Told;

  constructor(told: Told) {
    super();
    this.told = told;
  }

  override eq(other: TimeBar): boolean {
    return other.told === this.told;
  }

  override toDOM(): Node {
    const { time: line, share } = this.told.line;
    const parts = KINDS.filter((kind) => line[kind] > 0).map((kind) => {
      const part = h("span", { class: `tc-time-${kind}` });
      part.style.flexGrow = String(line[kind]);
      return part;
    });
    const bar = h("div", { class: "tc-time", title: this.told.words }, ...parts);
    bar.style.width = `${Math.max(4, Math.round(share * 100))}%`;
    return h("div", { class: "tc-time-line" }, bar);
  }
}

const gutters = new Compartment();
const field: StateField<Shown> = StateField.define<Shown>({
  create: () => ({ spots: [], lines: new Map(), bars: RangeSet.empty }),
  update: (shown, transaction) => {
    const told = transaction.effects.find((effect) => effect.is(setTimes));
    const { state } = transaction;
    if (told?.is(setTimes)) {
      return draw(state, told.value.map(spotOf));
    }
    return transaction.docChanged && shown.spots.length ? draw(state, moved(shown.spots, transaction)) : shown;
  },
});
const column = gutter({ class: "tc-time-gutter", markers: (view) => view.state.field(field).bars });

function spotOf(told: Told): Spot {
  const { file, line: number, text } = told.line.time;
  const mark: Mark = {
    file,
    line: number,
    text,
    state: "captured",
    column: null,
    end_column: null,
    reason: "",
    headline: "",
    explanation: "",
    hints: [],
  };
  timed.set(mark, told);
  return { mark, at: number };
}

function draw(state: EditorState, from: Spot[]): Shown {
  const { spots, placed } = locate([...state.doc.iterLines()], from);
  const lines = new Map<number, Told>();
  const bars = placed.flatMap(({ line, mark }) => {
    const found = timed.get(mark);
    if (found === undefined) {
      return [];
    }
    lines.set(line, found);
    return [new TimeBar(found).range(state.doc.line(line).from)];
  });
  return { spots, lines, bars: RangeSet.of(bars) };
}
