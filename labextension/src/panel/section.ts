// The base class of the side panel's parts.
//
// Input: the kernel that is looked at, and what the user has chosen. Output: an element that each part keeps up to date
// while it is seen.

import type { TranslationBundle } from "@jupyterlab/translation";

import { h } from "../dom.ts";
import type { EntryView, UserLine } from "../generated/displays.ts";
import type { Link } from "../link.ts";
import { short } from "../words.ts";

/** The panel, as its sections see it. */
export interface Frame {
  readonly trans: TranslationBundle;
  /** The kernel that is looked at; null where none has tcompile. */
  readonly link: Link | null;
  /** The entry that is looked at: the numbers of its function and its own. */
  choice: Choice | null;
  /** Shows a graph, or a kernel of one. */
  go(tab: "graph" | "kernels", choice: Choice): void;
  /** Puts the cursor to a line of the user's. */
  reveal(where: UserLine): void;
  /** Returns a cell's name: its prompt. */
  cellName(cell: string): string;
  /** Puts a cell into view. */
  revealCell(cell: string): void;
  /** Shows the page about a reason for graph breaks. */
  about(reason: string): void;
}

/** An entry of a function, and perhaps a kernel of it. */
export interface Choice {
  number: number;
  entry: number;
  kernel?: string;
}

/** A part of the panel, behind a tab. */
export interface Section {
  readonly node: HTMLElement;
  /** Draws what there is now. Called when the section comes into view and when something changes while it is. */
  draw(): void;
  /** The cursor has reached a line. */
  cursor?(file: string, line: number): void;
}

/** A button that looks like a link and goes to a line of the user's. */
export function lineButton(frame: Frame, where: UserLine): HTMLElement | null {
  if (!where.line) {
    return null;
  }
  const text = short(where.text.trim(), 60);
  const label = frame.trans.__("line %1", where.line);
  return h(
    "button",
    { type: "button", class: "tc-link", title: frame.trans.__("Go to this line"), click: () => frame.reveal(where) },
    text ? `${label}: ` : label,
    text && h("code", {}, text),
  );
}

/** An entry in a few words. */
export function entryName(frame: Frame, entry: EntryView): string {
  const { trans } = frame;
  const where = entry.starts === "start" ? "" : `, ${entry.starts}`;
  return `${trans.__("entry %1", entry.number)}${where}`;
}

/** Functions that can be chosen; of more, the newest. */
const MOST = 200;

/** The entries of the kernel's functions, newest function first. */
export function choices(frame: Frame): { choice: Choice; name: string; entry: EntryView }[] {
  const found = [];
  for (const { number, view } of [...(frame.link?.model.functions.values() ?? [])].slice(-MOST).reverse()) {
    for (const entry of view.entries) {
      if (entry.state === "compiled" && entry.ops > 0) {
        const name = `${short(view.name, 40)}, ${entryName(frame, entry)}`;
        found.push({ choice: { number, entry: entry.number }, name, entry });
      }
    }
  }
  return found;
}

/** A list to choose from, which stays the same element while what is in it changes. */
export class Chooser {
  readonly node: HTMLSelectElement;
  private names = "";

  constructor(label: string, changed: (value: string) => void) {
    this.node = h("select", { class: "tc-select", "aria-label": label, change: () => changed(this.node.value) });
  }

  /** Offers values by their names. */
  offer(values: readonly (readonly [string, string])[], chosen: string): void {
    const names = values.map((pair) => pair.join("\n")).join("\n\n");
    if (names !== this.names) {
      this.names = names;
      this.node.replaceChildren(...values.map(([value, name]) => h("option", { value }, name)));
    }
    this.node.value = chosen;
  }
}

/** A chooser among the entries; it sets the frame's choice. */
export class EntryChooser {
  private readonly chooser: Chooser;

  constructor(
    private readonly frame: Frame,
    changed: () => void,
  ) {
    this.chooser = new Chooser(frame.trans.__("Function and entry"), (value) => {
      frame.choice = choices(frame).find(({ choice }) => key(choice) === value)?.choice ?? null;
      changed();
    });
  }

  /** The chooser, with what there is to choose now; null where that is nothing. */
  draw(): HTMLElement | null {
    const { frame } = this;
    const all = choices(frame);
    const first = all[0];
    if (first === undefined) {
      return null;
    }
    if (!all.some(({ choice }) => key(choice) === key(frame.choice))) {
      frame.choice = first.choice;
    }
    this.chooser.offer(
      all.map(({ choice, name }) => [key(choice), name] as const),
      key(frame.choice),
    );
    return this.chooser.node;
  }
}

function key(choice: Choice | null): string {
  return choice ? `${choice.number}/${choice.entry}` : "";
}

/** Returns the result of `make`; an error text if the kernel's data is invalid. */
export function guarded(frame: Frame, make: () => HTMLElement): HTMLElement {
  try {
    return make();
  } catch (error) {
    console.warn(`tcompile: cannot show what the kernel says: ${String(error)}`);
    return note(frame.trans.__("This cannot be shown: what the kernel says of it makes no sense."));
  }
}

/** Something to unfold; what is inside is made when it is unfolded, for there may be hundreds. */
export function folded(
  frame: Frame,
  summary: (string | HTMLElement)[],
  open: boolean,
  inside: () => (HTMLElement | null)[],
  opens: (open: boolean) => void = () => {},
): HTMLElement {
  const filled = (): HTMLElement => h("div", {}, ...inside());
  const fill = (): void => details.append(guarded(frame, filled));
  const click = (): void => {
    opens(!details.open); // it does so after this
    if (!details.open && details.childElementCount === 1) {
      fill();
    }
  };
  const details = h("details", { open }, h("summary", { click }, ...summary));
  if (open) {
    fill();
  }
  return details;
}

/** A line in dim letters. */
export function note(text: string): HTMLElement {
  return h("div", { class: "tc-note tc-dim" }, text);
}
