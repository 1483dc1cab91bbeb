// Messages and graphs for the tests, as a kernel makes them.

import type { TranslationBundle } from "@jupyterlab/translation";

import type { EntryView, GraphView, NodeView, UserLine } from "../src/generated/displays.ts";
import type { Event } from "../src/generated/events.ts";
import { VERSION } from "../src/generated/events.ts";
import { PROTOCOL } from "../src/protocol.ts";
import type { CellSummary, FunctionState, Mark, News } from "../src/protocol.ts";

export const NOWHERE: UserLine = {
  file: "",
  line: 0,
  column: null,
  end_column: null,
  function: "",
  text: "",
  end_line: 0,
};

export function news(more: Partial<News> = {}): News {
  return {
    type: "news",
    protocol: PROTOCOL,
    schema: VERSION,
    whole: false,
    events: [],
    summaries: {},
    dropped: 0,
    functions: [],
    alive: [],
    cells: {},
    stance: "default",
    stances: {},
    malformed: 0,
    ...more,
  };
}

let count = 0;

/** An event of a kind; what is not said is empty. */
export function event(kind: Event["kind"], more: Record<string, unknown> = {}): Event {
  count += 1;
  const rest = { reasons: [], hints: [], phases: {}, ops: 0, ms: 0 };
  const base = { id: count, time: count, thread: 1, function: "f", compile_id: "0/0", cell: "a", defined_in: "a" };
  return { kind, schema: VERSION, ...rest, ...base, ...more } as unknown as Event;
}

export function summary(more: Partial<CellSummary> = {}): CellSummary {
  return { began: 0, graphs: 0, operations: 0, kernels: 0, breaks: 0, recompiles: 0, compile_ms: 0, ...more };
}

export function mark(line: number, text: string, more: Partial<Mark> = {}): Mark {
  const rest = { column: null, end_column: null, reason: "", headline: "", explanation: "", hints: [] };
  return { file: "a.py", line, text, state: "captured", ...rest, ...more };
}

export function state(number: number, marks: Mark[] = [], entries: EntryView[] = []): FunctionState {
  const view = {
    name: `f${number}`,
    where: NOWHERE,
    defined_in: "a",
    backend: "auto",
    settings: [],
    stance: "default",
    calls: "",
    entries,
    breaks: [],
    recompiles: [],
    eager_calls: 0,
    code: [],
    compiled_lines: [],
  };
  return { number, view, marks };
}

export function node(name: string, inputs: string[] = [], kernel = "", inside: NodeView[] = []): NodeView {
  const type = { type: "f64[5]", dtype: "float64", shape: ["5"] };
  const call = `${name}()`;
  return { name, op: name, sort: "pointwise", ...type, call, inputs, where: NOWHERE, kernel, backward: false, inside };
}

export function graph(nodes: NodeView[], outputs: string[]): GraphView {
  const kernels = [...new Set(nodes.map(({ kernel }) => kernel).filter(Boolean))];
  const inputs = [{ ...node("x"), op: "input", sort: "input" }];
  return { name: "g", ops: nodes.length, transformed: true, inputs, nodes, outputs, kernels, listing: "" };
}

/** Words as they are written, with the figures in them. */
export const trans = {
  __: (text: string, ...figures: unknown[]) => text.replace(/%(\d)/g, (_, n: string) => String(figures[Number(n) - 1])),
} as TranslationBundle;
