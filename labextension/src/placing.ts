// Which line of a cell a mark belongs to.
//
// Input: the lines of a cell as they stand now, and what the kernel says of lines as they were when they ran. Output:
// marks at the lines that are still the same, one for each line. A mark never appears at other code than its own.

import type { Transaction } from "@codemirror/state";

import type { Mark } from "./protocol.ts";

/** A mark at a line of the editor; lines count from 1. `from` and `to` are the stretch to underline, in columns. */
export interface Placed {
  line: number;
  from: number;
  to: number;
  mark: Mark;
}

/** A mark, and the line of the editor at which it is thought to be. */
export interface Spot {
  mark: Mark;
  at: number;
}

const RANK = { captured: 0, plain: 1, broken: 2 };

/**
 * Finds the lines of marks: the line that each is thought to be at; where that reads otherwise, the only line that reads
 * as the marked one did. A plain cell's empty first lines are not counted by the kernel, so both counts are tried.
 */
export function locate(lines: string[], spots: Spot[]): { spots: Spot[]; placed: Placed[] } {
  const empty = Math.max(
    0,
    lines.findIndex((line) => line.trim() !== ""),
  );
  const placed = new Map<number, Placed>();
  const found = spots.map(({ mark, at }) => {
    const line = [at, at + empty].find((number) => same(lines[number - 1], mark.text)) ?? only(lines, mark.text);
    if (line === undefined) {
      return { mark, at };
    }
    const before = placed.get(line);
    if (before === undefined || RANK[mark.state] > RANK[before.mark.state]) {
      placed.set(line, { line, ...stretch(lines[line - 1] ?? "", mark), mark });
    }
    return { mark, at: line };
  });
  return { spots: found, placed: [...placed.values()].sort((a, b) => a.line - b.line) };
}

/** Where marks are after an edit. */
export function moved(spots: Spot[], { changes, startState, state }: Transaction): Spot[] {
  return spots.map(({ mark, at }) => {
    if (at > startState.doc.lines) {
      return { mark, at };
    }
    // A line is identified by its end: text typed before it pushes it down.
    const end = changes.mapPos(startState.doc.line(at).to, -1);
    return { mark, at: state.doc.lineAt(end).number };
  });
}

/** Returns the number of the only line with this ``text``. */
function only(lines: string[], text: string): number | undefined {
  const first = lines.findIndex((line) => same(line, text));
  const alone = first >= 0 && lines.findLastIndex((line) => same(line, text)) === first;
  return alone ? first + 1 : undefined;
}

function same(line: string | undefined, text: string): boolean {
  return line !== undefined && text.trim() !== "" && line.trim() === text.trim();
}

/** Returns the columns of the break, or of the whole line if unknown. */
function stretch(line: string, mark: Mark): { from: number; to: number } {
  const { column, end_column: end } = mark;
  if (column !== null && end !== null && column < end && end <= line.length) {
    return { from: column, to: end };
  }
  const from = line.length - line.trimStart().length;
  return { from, to: Math.max(from + 1, line.trimEnd().length) };
}
