// What the kernel and the page say to each other over the comm.
//
// Enters: whatever came over the wire. Leaves: a message that has the shape it must have, or the plain line that says
// what is wrong with it. The other end is `tcompile_jupyter/panel.py`.

import type { FunctionView, GraphView, KernelView } from "./generated/displays.ts";
import type { Event } from "./generated/events.ts";

/** The comm's name, the same at both ends. */
export const TARGET = "tcompile";
/** The version of the messages. The events have a version of their own. */
export const PROTOCOL = 1;
/** Events and functions of one message that are read; of more, the last ones. */
export const MOST = 10_000;

/** What is known of a line of the user's: it is in a graph, a graph broke there, or it runs in plain Python. */
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

/** What comes a few times a second while the page listens, and once, with all that is remembered, when it begins to. */
export interface News {
  type: "news";
  protocol: number;
  schema: number;
  whole: boolean; // whether this is everything, and not what is new
  events: Event[];
  dropped: number; // events that went before, and are forgotten
  functions: FunctionState[];
  alive: number[]; // the numbers of all functions that there are
  cells: Record<string, string>; // which cell each file is
  runs: [string, number][]; // cells that began to run, and when
  stance: string;
  stances: Record<string, string>;
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

/** What the page says. */
export type ToKernel =
  | { ask: "listen"; question: number }
  | { ask: "quiet"; question: number }
  | { ask: "stance"; question: number; stance: string }
  | { ask: "functions"; question: number }
  | { ask: "graph"; question: number; number: number; entry: number }
  | { ask: "kernel"; question: number; number: number; entry: number; kernel: string };

/** Reads a message. Returns a line of text where it is none that this page understands. */
export function read(data: unknown): News | Answer | string {
  if (!isRecord(data)) {
    return "a message that is no record";
  }
  if (data.type === "answer" && typeof data.question === "number") {
    return { ...data, error: text(data.error) } as Answer;
  }
  if (data.type !== "news") {
    return `a message of an unknown kind: ${text(data.type).slice(0, 40)}`;
  }
  return {
    type: "news",
    protocol: number(data.protocol),
    schema: number(data.schema),
    whole: data.whole === true,
    events: list(data.events).filter(isEvent),
    dropped: number(data.dropped),
    functions: list(data.functions).filter(isFunction),
    alive: list(data.alive).filter((item) => typeof item === "number"),
    cells: texts(data.cells),
    runs: list(data.runs).filter(isRun),
    stance: text(data.stance),
    stances: texts(data.stances),
  };
}

/** What is odd about a kernel of another version, in a line; "" where nothing is. */
export function mismatch(protocol: number, schema: number, version: number): string {
  if (protocol !== PROTOCOL) {
    const newer = protocol > PROTOCOL ? "newer" : "older";
    return `This kernel's tcompile is ${newer} than this panel: install the same version for both.`;
  }
  if (schema !== version) {
    return `This kernel's events are of version ${schema}, this panel reads version ${version}: some are not shown.`;
  }
  return "";
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isEvent(value: unknown): value is Event {
  return isRecord(value) && typeof value.kind === "string" && typeof value.id === "number";
}

function isFunction(value: unknown): value is FunctionState {
  if (!isRecord(value) || typeof value.number !== "number" || !isRecord(value.view) || !Array.isArray(value.marks)) {
    return false;
  }
  const view = value.view;
  return typeof view.name === "string" && ["entries", "breaks", "code"].every((name) => Array.isArray(view[name]));
}

function isRun(value: unknown): value is [string, number] {
  return Array.isArray(value) && typeof value[0] === "string" && typeof value[1] === "number";
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

function texts(value: unknown): Record<string, string> {
  return isRecord(value)
    ? Object.fromEntries(Object.entries(value).filter((pair): pair is [string, string] => typeof pair[1] === "string"))
    : {};
}
