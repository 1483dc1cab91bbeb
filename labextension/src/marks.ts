// The marks in the editors of cells: the gutter, the underlined ranges, and their hover texts.
//
// Input: what the models know of each cell's lines, and edits. Output: marks that move with their code and go when it
// changes, and which line the cursor is in. Works with the editors alone, so that a cell that is moved, or shown in two
// tabs, needs no care of its own.

import { Compartment, RangeSet, StateEffect, StateField } from "@codemirror/state";
import type { EditorState, Extension } from "@codemirror/state";
import { Decoration, EditorView, GutterMarker, ViewPlugin, gutter, hoverTooltip, showTooltip } from "@codemirror/view";
import type { DecorationSet, Tooltip } from "@codemirror/view";
import type { ICodeCellModel } from "@jupyterlab/cells";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Signal } from "@lumino/signaling";

import { code, h } from "./dom.ts";
import type { Links } from "./links.ts";
import { locate, moved } from "./placing.ts";
import type { Placed, Spot } from "./placing.ts";
import type { Mark } from "./protocol.ts";
import type { Timing } from "./timing.ts";

/** Where the cursor is: the user's line, as the kernel counts it. */
export interface Cursor {
  file: string;
  line: number;
}

/** Marks, and how their bars look. */
interface Told {
  marks: Mark[];
  bars: Bars;
}

type Bars = Record<Mark["state"], Bar>;

interface Shown {
  spots: Spot[];
  bars: Bars | null;
  placed: Placed[];
  lines: DecorationSet;
  gutter: RangeSet<GutterMarker>;
}

interface Editor {
  view: EditorView;
  model: ICodeCellModel;
}

const setMarks = StateEffect.define<Told>();
const explain = StateEffect.define<Placed | null>();

/** The marks of all editors of this page. */
export class Marks {
  /** The cursor has reached a line with a mark. */
  readonly cursor = new Signal<this, Cursor>(this);
  private readonly editors = new Map<string, Set<Editor>>();
  private readonly bars: Bars;
  private readonly said = h("div", { class: "tc-sr", role: "status" }); // for screen readers
  private shown = true;

  constructor(
    private readonly links: Links,
    private readonly trans: TranslationBundle,
    private readonly timing: Timing,
    private readonly about: (reason: string) => void,
  ) {
    this.bars = {
      captured: new Bar("captured", trans.__("captured in a graph")),
      broken: new Bar("broken", trans.__("graph break")),
      plain: new Bar("plain", trans.__("plain Python")),
    };
    document.body.append(this.said);
    links.news.connect((_, { link, change }) => {
      for (const cell of change.cells) {
        for (const editor of this.editors.get(cell) ?? []) {
          if (links.ofCell(editor.model) === link) {
            this.update(editor);
          }
        }
      }
    });
  }

  /** Shows or hides all marks. */
  show(shown: boolean): void {
    this.shown = shown;
    this.refresh();
  }

  /** Reads the models again, for all editors. */
  refresh(): void {
    this.editors.forEach((editors) => editors.forEach((editor) => this.update(editor)));
  }

  /** The extension of the editor of a cell. */
  extension(model: ICodeCellModel): Extension {
    const { editors } = this;
    const update = (editor: Editor): void => this.update(editor);
    const register = ViewPlugin.define((view) => {
      const editor = { view, model };
      editors.set(model.id, (editors.get(model.id) ?? new Set()).add(editor));
      queueMicrotask(() => update(editor));
      return {
        destroy() {
          const left = editors.get(model.id);
          left?.delete(editor);
          if (!left?.size) {
            editors.delete(model.id);
          }
        },
      };
    });
    const follow = EditorView.updateListener.of(({ selectionSet, state, view }) => {
      const at = selectionSet && view.hasFocus ? placedAt(state, state.selection.main.head) : undefined;
      if (at !== undefined) {
        this.cursor.emit({ file: at.mark.file, line: at.mark.line });
      }
    });
    const hover = hoverTooltip((view, pos) => {
      const at = placedAt(view.state, pos);
      const line = view.state.doc.lineAt(pos);
      if (at !== undefined && at.mark.state !== "captured") {
        return this.tooltip(view.state, at);
      }
      const time = this.timing.about(view.state, line.number);
      return time === null ? null : { pos: line.from, end: line.to, above: true, create: () => ({ dom: box(time) }) };
    });
    const pinned = StateField.define<Tooltip | null>({
      create: () => null,
      update: (tooltip, transaction) => {
        const told = transaction.effects.find((effect) => effect.is(explain));
        if (told?.is(explain)) {
          return told.value === null ? null : this.tooltip(transaction.state, told.value);
        }
        return transaction.docChanged || transaction.selection ? null : tooltip;
      },
      provide: (tooltip) => showTooltip.from(tooltip),
    });
    return [shownMarks, gutters.of([]), register, follow, hover, pinned];
  }

  /** Puts the cursor to the next line with a graph break, or to the first one, and shows the reason. */
  nextBreak(view: EditorView): boolean {
    const breaks = (view.state.field(shownMarks, false)?.placed ?? []).filter((at) => at.mark.state === "broken");
    const line = view.state.doc.lineAt(view.state.selection.main.head).number;
    const next = breaks.find((at) => at.line > line) ?? breaks[0];
    if (next === undefined) {
      return false;
    }
    const anchor = view.state.doc.line(next.line).from + next.from;
    const { headline, explanation, hints } = next.mark;
    this.said.textContent = [this.trans.__("Graph break"), headline, explanation, ...hints].join(". ");
    view.focus();
    view.dispatch({ selection: { anchor }, scrollIntoView: true, effects: explain.of(next) });
    return true;
  }

  /** The editors that show a line of code of the kernel's, and where in them it stands now. */
  find(cell: string, file: string, line: number): { view: EditorView; model: ICodeCellModel; pos: number }[] {
    const found = [];
    for (const { view, model } of this.editors.get(cell) ?? []) {
      const placed = view.state.field(shownMarks, false)?.placed ?? [];
      const at = placed.find(({ mark }) => mark.file === file && mark.line === line);
      const number = at?.line ?? line;
      if (number >= 1 && number <= view.state.doc.lines) {
        found.push({ view, model, pos: view.state.doc.line(number).from + (at?.from ?? 0) });
      }
    }
    return found;
  }

  private update({ view, model }: Editor): void {
    const link = this.shown ? this.links.ofCell(model) : null;
    const marks = link?.model.marks(model.id) ?? [];
    const before = view.state.field(shownMarks, false);
    if (marks.length === 0 && before?.spots.length === 0) {
      return;
    }
    const filled = marks.length > 0;
    view.dispatch({ effects: [setMarks.of({ marks, bars: this.bars }), gutters.reconfigure(filled ? bar : [])] });
  }

  private tooltip(state: EditorState, at: Placed): Tooltip {
    const { mark } = at;
    const { from } = state.doc.line(at.line);
    const headline = mark.headline || this.trans.__("This line runs in plain Python");
    const about = (event: Event): void => {
      event.preventDefault();
      this.about(mark.reason);
    };
    const create = (): { dom: HTMLElement } => ({
      dom: h(
        "div",
        { class: "tc-hover", role: "tooltip" },
        h("div", { class: "tc-hover-head" }, mark.state === "broken" ? this.trans.__("Graph break") : "tcompile"),
        h("div", {}, headline),
        mark.explanation && h("div", { class: "tc-dim" }, ...code(mark.explanation)),
        ...mark.hints.map((hint) => h("div", { class: "tc-hint" }, ...code(hint))),
        mark.reason && h("a", { href: `#${mark.reason}`, click: about }, this.trans.__("More about this reason")),
        this.timing.about(state, at.line),
      ),
    });
    return { pos: from + at.from, end: from + at.to, above: true, create };
  }
}

function box(...parts: HTMLElement[]): HTMLElement {
  return h("div", { class: "tc-hover", role: "tooltip" }, ...parts);
}

class Bar extends GutterMarker {
  readonly state: Mark["state"];
  readonly title: string;

  constructor(state: Mark["state"], title: string) {
    super();
    this.state = state;
    this.title = title;
  }

  override eq(other: Bar): boolean {
    return other.state === this.state;
  }

  override toDOM(): Node {
    return h("div", { class: `tc-bar tc-${this.state}`, title: this.title });
  }
}

const UNDERLINE = Decoration.mark({ class: "tc-underline" });

const gutters = new Compartment();
const bar = gutter({ class: "tc-gutter", markers: (view) => view.state.field(shownMarks).gutter });

const shownMarks = StateField.define<Shown>({
  create: () => ({ spots: [], bars: null, placed: [], lines: Decoration.none, gutter: RangeSet.empty }),
  update: (shown, transaction) => {
    const told = transaction.effects.find((effect) => effect.is(setMarks));
    if (told?.is(setMarks)) {
      const { marks, bars } = told.value;
      const spots = marks.map((mark) => ({ mark, at: mark.line }));
      return draw(transaction.state, spots, bars);
    }
    return transaction.docChanged && shown.bars && shown.spots.length
      ? draw(transaction.state, moved(shown.spots, transaction), shown.bars)
      : shown;
  },
  provide: (field) => EditorView.decorations.from(field, (shown) => shown.lines),
});

function draw(state: EditorState, marks: Spot[], look: Bars): Shown {
  const { spots, placed } = locate([...state.doc.iterLines()], marks);
  const bars = placed.map((at) => look[at.mark.state].range(state.doc.line(at.line).from));
  const broken = placed.filter((at) => at.mark.state === "broken");
  const underlined = broken.map((at) => {
    const { from } = state.doc.line(at.line);
    return UNDERLINE.range(from + at.from, from + at.to);
  });
  return { spots, bars: look, placed, lines: Decoration.set(underlined), gutter: RangeSet.of(bars) };
}

function placedAt(state: EditorState, pos: number): Placed | undefined {
  const line = state.doc.lineAt(pos).number;
  return state.field(shownMarks, false)?.placed.find((at) => at.line === line);
}
