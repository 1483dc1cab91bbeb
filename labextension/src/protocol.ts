// The messages between the kernel and the page, over the comm.
//
// Input: whatever came over the wire. Output: a message that has the shape it must have, or the plain line that says
// what is wrong with it. The other end is `tcompile_jupyter/panel.py`.

import type { FunctionView, GraphView, KernelView } from "./generated/displays.ts";
import type { Event } from "./generated/events.ts";

/** The comm's name, the same at both ends. */
export const TARGET = "tcompile";
/** The version of the messages. The events have a version of their own. */
export const PROTOCOL = 2;
/** Events and functions of one message that are read; of more, the last ones. */
export const MOST = 10_000;

/** The state of a user's line: in a graph, at a graph break, or in plain Python. */
export interface Mark {
  file: string;
  line: number;
  text: string;
  state: "captured" | "broken" | "plain";
  column: number | null;
  end_column: number | null;
  reason: string;
  headline: string;
  explanation: string;
  hints: string[];
}

/** A compiled function; `number` is the first part of the ids of its compiles. The entries come without graphs. */
export interface FunctionState {
  number: number;
  view: FunctionView;
  marks: Mark[];
}

/** What the newest run of a cell compiled. The kernel counts: reports and badges show the same numbers. */
export interface CellSummary {
  began: number;
  graphs: number;
  operations: number;
  kernels: number;
  breaks: number;
  recompiles: number;
  compile_ms: number;
}

/** What comes a few times a second while the page listens, and once, with all that is remembered, when it begins to. */
export interface News {
  type: "news";
  protocol: number;
  schema: number;
  whole: boolean; // whether this is everything, and not what is new
  events: Event[];
  summaries: Record<string, CellSummary>; // of the cells in the events
  dropped: number; // number of earlier events that were dropped
  functions: FunctionState[];
  alive: number[]; // the numbers of all existing functions
  cells: Record<string, string>; // which cell each file is
  stance: string;
  stances: Record<string, string>;
  malformed: number; // parts that this page could not read and has skipped
}

/** The answer to a question; `error` is a line where there is none. */
export interface Answer {
  type: "answer";
  question: number;
  error: string;
  graph?: GraphView | null;
  kernel?: KernelView | null;
  functions?: FunctionState[];
}

/** The messages of the page. */
export type ToKernel =
  | { ask: "listen"; question: number }
  | { ask: "quiet"; question: number }
  | { ask: "stance"; question: number; stance: string }
  | { ask: "functions"; question: number }
  | { ask: "graph"; question: number; number: number; entry: number }
  | { ask: "kernel"; question: number; number: number; entry: number; kernel: string };

/** Parses a message. Returns an error text if this page does not understand it. */
export function read(data: unknown): News | Answer | string {
  if (!isRecord(data)) {
    return "a message that is no record";
  }
  if (data.type === "answer" && typeof data.question === "number") {
    const functions = list(data.functions).flatMap((one) => functionOf(one) ?? []);
    return { ...data, error: text(data.error), functions } as Answer;
  }
  if (data.type !== "news") {
    return `a message of an unknown kind: ${text(data.type).slice(0, 40)}`;
  }
  const [events, functions] = [list(data.events), list(data.functions)];
  const known = { events: events.filter(isEvent), functions: functions.flatMap((one) => functionOf(one) ?? []) };
  return {
    type: "news",
    ...known,
    malformed: events.length + functions.length - known.events.length - known.functions.length,
    protocol: number(data.protocol),
    schema: number(data.schema),
    whole: data.whole === true,
    summaries: summaries(data.summaries),
    dropped: number(data.dropped),
    alive: list(data.alive).filter((item) => typeof item === "number"),
    cells: texts(data.cells),
    stance: text(data.stance),
    stances: texts(data.stances),
  };
}

/** Returns a remark on a kernel of another version; "" if there is none. */
export type Mismatch = "" | "newer" | "older" | "events";

/** How the versions of a kernel's messages and events compare with this page's. */
export function mismatch(protocol: number, schema: number, version: number): Mismatch {
  if (protocol !== PROTOCOL) {
    return protocol > PROTOCOL ? "newer" : "older";
  }
  return schema === version ? "" : "events";
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isEvent(value: unknown): value is Event {
  return isRecord(value) && typeof value.kind === "string" && typeof value.id === "number";
}

function functionOf(value: unknown): FunctionState | null {
  if (!isRecord(value) || typeof value.number !== "number" || !isRecord(value.view) || !Array.isArray(value.marks)) {
    return null;
  }
  const view = value.view;
  const lists = ["entries", "breaks", "code", "settings", "recompiles"].every((name) => Array.isArray(view[name]));
  const records = [view.where, ...list(view.breaks)].every(isRecord) && list(view.entries).every(isEntry);
  const whole = typeof view.name === "string" && lists && records;
  return whole ? ({ ...value, marks: value.marks.filter(isMark) } as unknown as FunctionState) : null;
}

function isEntry(value: unknown): boolean {
  return (
    isRecord(value) &&
    ["number", "hits", "ops", "compile_ms"].every((name) => typeof value[name] === "number") &&
    ["guards", "kernels"].every((name) => Array.isArray(value[name]))
  );
}

function isMark(value: unknown): value is Mark {
  const texts = ["file", "text", "reason", "headline", "explanation"];
  return (
    isRecord(value) &&
    texts.every((name) => typeof value[name] === "string") &&
    typeof value.line === "number" &&
    ["captured", "broken", "plain"].includes(value.state as string) &&
    [value.column, value.end_column].every((at) => at === null || typeof at === "number") &&
    Array.isArray(value.hints) &&
    value.hints.every((hint) => typeof hint === "string")
  );
}

function isSummary(value: unknown): value is CellSummary {
  const numbers = ["began", "graphs", "operations", "kernels", "breaks", "recompiles", "compile_ms"];
  return isRecord(value) && numbers.every((name) => typeof value[name] === "number");
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value.slice(-MOST) : [];
}

function number(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function summaries(value: unknown): Record<string, CellSummary> {
  const pairs = isRecord(value) ? Object.entries(value) : [];
  return Object.fromEntries(pairs.filter((pair): pair is [string, CellSummary] => isSummary(pair[1])));
}

function texts(value: unknown): Record<string, string> {
  return isRecord(value)
    ? Object.fromEntries(Object.entries(value).filter((pair): pair is [string, string] => typeof pair[1] === "string"))
    : {};
}
