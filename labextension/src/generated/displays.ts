// A display of tcompile: the types of its JSON. Made of jupyter_ext/tcompile_jupyter/displays.schema.json by tools/write_front_end_types.py.

/** The version that these types speak of. */
export const VERSION = 1;

/** One reason why a call is not faster. */
export interface Cause {
  kind: string;
  text: string;
  cure: string;
  ms: number;
  left_ms: number;
  file: string;
  line: number;
  code: string;
}

/** The same work in plain Python and compiled; times are medians of `repeats` runs of each, in milliseconds. */
export interface ComparisonRow {
  name: string;
  eager_ms: number;
  compiled_ms: number;
  speed_up: number | null;
  speed: string;
  tone: string;
  equal: boolean;
  difference: string;
  repeats: number;
  graphs: number | null;
  kernels: number | null;
  uncertainty: number | null;
}

/** A table of comparisons; `what` is the kind of its rows. */
export interface ComparisonView {
  what: string;
  rows: ComparisonRow[];
}

/** One compiled stretch of a function, for calls of one kind. */
export interface EntryView {
  number: number;
  state: string;
  starts: string;
  ends: string;
  hits: number;
  ops: number;
  kernels: string[];
  guards: string[];
  compile_ms: number;
  phases: Record<string, number>;
  graph: GraphView | null;
}

/** One call, explained. `compile_times` are milliseconds, of each phase and in `total`. */
export interface ExplainView {
  function: string;
  headline: string;
  graph_count: number;
  graph_break_count: number;
  op_count: number;
  graphs: GraphView[];
  breaks: GraphBreakView[];
  guards: string[];
  compile_times: Record<string, number>;
  fell_back: string[];
  loops: string[];
  derivatives: string[];
}

/** The events of one function while a cell ran; `cell` is true for the cell's own statements. */
export interface FunctionReport {
  name: string;
  cell: boolean;
  kernels: number;
  compile_ms: number;
  graphs: GraphView[];
  breaks: GraphBreakView[];
  recompiles: string[][];
  fallbacks: string[];
}

/** A compiled function. `code` are its lines, `compiled_lines` the numbers of those that are in a graph. */
export interface FunctionView {
  name: string;
  where: UserLine;
  defined_in: string | null;
  backend: string;
  settings: string[];
  stance: string;
  calls: string;
  entries: EntryView[];
  breaks: GraphBreakView[];
  recompiles: string[][];
  eager_calls: number;
  code: UserLine[];
  compiled_lines: number[];
}

/** The gradient by one argument: its norm, and its relative error by finite differences of each step. */
export interface GradientRow {
  argument: string;
  shape: string;
  norm: number | null;
  best: number | null;
  step: number | null;
  agrees: boolean;
  differs: boolean;
  verdict: string;
  errors: (number | null)[];
}

/** A function's gradient: whether finite differences confirm it, what it costs, and its graph. */
export interface GradientView {
  function: string;
  value: number | null;
  rows: GradientRow[];
  steps: number[];
  function_ms: number;
  gradient_ms: number;
  lines: string;
  graphs: GraphView[];
}

/** A place where capture stopped. `stack` are the user's lines, outermost first; `reason` is its id. */
export interface GraphBreakView {
  function: string;
  reason: string;
  headline: string;
  explanation: string;
  hints: string[];
  stack: UserLine[];
}

/** A graph: its inputs, its operations in order, the names of its outputs, and which kernel computes what. */
export interface GraphView {
  name: string;
  ops: number;
  transformed: boolean;
  inputs: NodeView[];
  nodes: NodeView[];
  outputs: string[];
  kernels: string[];
  listing: string;
}

/** A guard of a compiled entry that did not hold for a call. */
export interface GuardFailureView {
  function: string;
  entry: number;
  source: string;
  guard: string;
  expected: string;
  seen: string;
  hint: string;
  cell: string | null;
}

/** One kernel. `nodes` are all operations computed in it; `ir` and `assembly` are its own functions alone. */
export interface KernelView {
  name: string;
  description: string;
  nodes: NodeView[];
  language: string;
  ir: string;
  assembly: string;
}

/** The time of one line in a call, in milliseconds. `why` says what takes it where that is no kernel. */
export interface LineTime {
  cell: string;
  file: string;
  line: number;
  text: string;
  fused: number;
  library: number;
  plain: number;
  why: string;
}

/**
 * One value: its name, operation, type and shape (sizes as text: they may be symbols), and the call that makes
 * it.
 */
export interface NodeView {
  name: string;
  op: string;
  sort: string;
  type: string;
  dtype: string;
  shape: string[];
  call: string;
  inputs: string[];
  where: UserLine;
  kernel: string;
  backward: boolean;
  inside: NodeView[];
}

/** Where the time of a call goes. All times are milliseconds. */
export interface ProfileView {
  function: string;
  ms: number;
  plain_ms: number;
  compile_ms: number;
  unknown_ms: number;
  calls: number;
  lines: LineTime[];
  causes: Cause[];
}

/** The report under a cell. `waiting` names the functions of the cell that were not called. */
export interface ReportView {
  headline: string;
  stance: string;
  functions: FunctionReport[];
  waiting: string[];
  plain_statements: GraphBreakView[];
  comparison: ComparisonView | null;
  statements: ComparisonView | null;
  spent: TimeSpent | null;
  times: ProfileView | null;
  gradient: GradientView | null;
}

/** What took the time of a cell's run, by samples, in milliseconds. */
export interface TimeSpent {
  ms: number;
  compiled_ms: number;
  compiling_ms: number;
  loading_ms: number;
  plain_ms: number;
  causes: Cause[];
}

/** A place in the user's code; columns are 0-based. `end_line` is set if it spans several lines. */
export interface UserLine {
  file: string;
  line: number;
  column: number | null;
  end_column: number | null;
  function: string;
  text: string;
  end_line: number;
}

/** The JSON of the type `application/vnd.tcompile.function+json`. */
export interface ShownFunction {
  kind: "function";
  version: 1;
  name: string;
  where: UserLine;
  defined_in: string | null;
  backend: string;
  settings: string[];
  stance: string;
  calls: string;
  entries: EntryView[];
  breaks: GraphBreakView[];
  recompiles: string[][];
  eager_calls: number;
  code: UserLine[];
  compiled_lines: number[];
}

/** The JSON of the type `application/vnd.tcompile.graph+json`. */
export interface ShownGraph {
  kind: "graph";
  version: 1;
  name: string;
  ops: number;
  transformed: boolean;
  inputs: NodeView[];
  nodes: NodeView[];
  outputs: string[];
  kernels: string[];
  listing: string;
}

/** The JSON of the type `application/vnd.tcompile.kernel+json`. */
export interface ShownKernel {
  kind: "kernel";
  version: 1;
  name: string;
  description: string;
  nodes: NodeView[];
  language: string;
  ir: string;
  assembly: string;
}

/** The JSON of the type `application/vnd.tcompile.graph-break+json`. */
export interface ShownGraphBreak {
  kind: "graph-break";
  version: 1;
  function: string;
  reason: string;
  headline: string;
  explanation: string;
  hints: string[];
  stack: UserLine[];
}

/** The JSON of the type `application/vnd.tcompile.guard-failure+json`. */
export interface ShownGuardFailure {
  kind: "guard-failure";
  version: 1;
  function: string;
  entry: number;
  source: string;
  guard: string;
  expected: string;
  seen: string;
  hint: string;
  cell: string | null;
}

/** The JSON of the type `application/vnd.tcompile.explain+json`. */
export interface ShownExplain {
  kind: "explain";
  version: 1;
  function: string;
  headline: string;
  graph_count: number;
  graph_break_count: number;
  op_count: number;
  graphs: GraphView[];
  breaks: GraphBreakView[];
  guards: string[];
  compile_times: Record<string, number>;
  fell_back: string[];
  loops: string[];
  derivatives: string[];
}

/** The JSON of the type `application/vnd.tcompile.profile+json`. */
export interface ShownProfile {
  kind: "profile";
  version: 1;
  function: string;
  ms: number;
  plain_ms: number;
  compile_ms: number;
  unknown_ms: number;
  calls: number;
  lines: LineTime[];
  causes: Cause[];
}

/** The JSON of the type `application/vnd.tcompile.comparison+json`. */
export interface ShownComparison {
  kind: "comparison";
  version: 1;
  what: string;
  rows: ComparisonRow[];
}

/** The JSON of the type `application/vnd.tcompile.gradient+json`. */
export interface ShownGradient {
  kind: "gradient";
  version: 1;
  function: string;
  value: number | null;
  rows: GradientRow[];
  steps: number[];
  function_ms: number;
  gradient_ms: number;
  lines: string;
  graphs: GraphView[];
}

/** The JSON of the type `application/vnd.tcompile.report+json`. */
export interface ShownReport {
  kind: "report";
  version: 1;
  headline: string;
  stance: string;
  functions: FunctionReport[];
  waiting: string[];
  plain_statements: GraphBreakView[];
  comparison: ComparisonView | null;
  statements: ComparisonView | null;
  spent: TimeSpent | null;
  times: ProfileView | null;
  gradient: GradientView | null;
}

/** A display of tcompile. */
export type Shown =
  | ShownFunction
  | ShownGraph
  | ShownKernel
  | ShownGraphBreak
  | ShownGuardFailure
  | ShownExplain
  | ShownProfile
  | ShownComparison
  | ShownGradient
  | ShownReport;
