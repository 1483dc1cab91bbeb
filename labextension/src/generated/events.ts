// An event of tcompile: the types of its JSON. Made of tcompile/observe/events.schema.json by tools/write_front_end_types.py.

/** The version that these types speak of. */
export const VERSION = 3;

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

/** A function is about to be captured. `reason` is "first call" or the failed guards of a recompile. */
export interface CompileStarted {
  kind: "compile_started";
  schema: 3;
  id: number;
  time: number;
  thread: number;
  function: string;
  compile_id: string;
  cell: string | null;
  defined_in: string | null;
  reason: string;
  where: UserLine;
}

/** Capture finished a graph. `get_graph` gives the Graph itself to readers in this process. */
export interface GraphCaptured {
  kind: "graph_captured";
  schema: 3;
  id: number;
  time: number;
  thread: number;
  function: string;
  compile_id: string;
  cell: string | null;
  defined_in: string | null;
  graph: string;
  ops: number;
  inputs: string[];
  guards: string[];
  readable: string;
  code: string;
}

/** Capture stopped: what could not be captured, where, why, and what to do. */
export interface GraphBroke {
  kind: "graph_broke";
  schema: 3;
  id: number;
  time: number;
  thread: number;
  function: string;
  compile_id: string;
  cell: string | null;
  defined_in: string | null;
  reason: string;
  headline: string;
  explanation: string;
  hints: string[];
  where: UserLine;
  stack: UserLine[];
}

/** The outcome of a loop, and the reason: `outcome` is "one node", "unrolled" or "python". */
export interface LoopDecided {
  kind: "loop_decided";
  schema: 3;
  id: number;
  time: number;
  thread: number;
  function: string;
  compile_id: string;
  cell: string | null;
  defined_in: string | null;
  outcome: string;
  reason: string;
  iterations: string;
  where: UserLine;
}

/** A guard of a cached entry did not hold for a call. */
export interface GuardFailed {
  kind: "guard_failed";
  schema: 3;
  id: number;
  time: number;
  thread: number;
  function: string;
  compile_id: string;
  cell: string | null;
  defined_in: string | null;
  entry: number;
  source: string;
  guard: string;
  expected: string;
  seen: string;
  hint: string;
}

/** No entry fitted a call, so another one is being compiled. `reasons` has one text for each entry tried. */
export interface RecompileStarted {
  kind: "recompile_started";
  schema: 3;
  id: number;
  time: number;
  thread: number;
  function: string;
  compile_id: string;
  cell: string | null;
  defined_in: string | null;
  number: number;
  reasons: string[];
}

/** One transform ran. `before` and `after` count operations; `get_graph` gives the graph after it. */
export interface PassFinished {
  kind: "pass_finished";
  schema: 3;
  id: number;
  time: number;
  thread: number;
  function: string;
  compile_id: string;
  cell: string | null;
  defined_in: string | null;
  name: string;
  ms: number;
  before: number;
  after: number;
}

/** A kernel was compiled to machine code. `nodes` are its graph nodes; the `get_` fields return text. */
export interface KernelCompiled {
  kind: "kernel_compiled";
  schema: 3;
  id: number;
  time: number;
  thread: number;
  function: string;
  compile_id: string;
  cell: string | null;
  defined_in: string | null;
  kernel: string;
  graph: string;
  nodes: string[];
  lines: UserLine[];
  ms: number;
  description: string;
  language: string;
}

/** A compile ended. `phases` maps phase names to milliseconds; `outcome` is "compiled" or "plain". */
export interface CompileFinished {
  kind: "compile_finished";
  schema: 3;
  id: number;
  time: number;
  thread: number;
  function: string;
  compile_id: string;
  cell: string | null;
  defined_in: string | null;
  outcome: string;
  backend: string;
  graphs: number;
  kernels: number;
  ms: number;
  phases: Record<string, number>;
}

/** Machine code was found in the disk cache. `key` names it. */
export interface CacheHit {
  kind: "cache_hit";
  schema: 3;
  id: number;
  time: number;
  thread: number;
  function: string;
  compile_id: string;
  cell: string | null;
  defined_in: string | null;
  key: string;
  ms: number;
}

/** Machine code was not in the disk cache, or could not be used; `reason` says which. */
export interface CacheMiss {
  kind: "cache_miss";
  schema: 3;
  id: number;
  time: number;
  thread: number;
  function: string;
  compile_id: string;
  cell: string | null;
  defined_in: string | null;
  key: string;
  reason: string;
}

/** A call, or all further calls of a function, run in plain Python although compilation was asked for. */
export interface FellBack {
  kind: "fell_back";
  schema: 3;
  id: number;
  time: number;
  thread: number;
  function: string;
  compile_id: string;
  cell: string | null;
  defined_in: string | null;
  reason: string;
  detail: string;
}

/** A graph's kernels are launched one by one, although CUDA graphs were requested. */
export interface CudaGraphSkipped {
  kind: "cuda_graph_skipped";
  schema: 3;
  id: number;
  time: number;
  thread: number;
  function: string;
  compile_id: string;
  cell: string | null;
  defined_in: string | null;
  graph: string;
  reason: string;
}

/** One call was timed (only while there are listeners). A sampled short call represents `calls` calls. */
export interface CallTimed {
  kind: "call_timed";
  schema: 3;
  id: number;
  time: number;
  thread: number;
  function: string;
  compile_id: string;
  cell: string | null;
  defined_in: string | null;
  path: string;
  ms: number;
  calls: number;
}

/** A loop of a graph ran (only while there are listeners): `runs` times, with so many iterations in all, in */
export interface LoopTimed {
  kind: "loop_timed";
  schema: 3;
  id: number;
  time: number;
  thread: number;
  function: string;
  compile_id: string;
  cell: string | null;
  defined_in: string | null;
  where: UserLine;
  runs: number;
  iterations: number;
  ms: number;
}

/** The stance changed: for the process, or for one thread's `with` block. */
export interface StanceChanged {
  kind: "stance_changed";
  schema: 3;
  id: number;
  time: number;
  thread: number;
  function: string;
  compile_id: string;
  cell: string | null;
  defined_in: string | null;
  stance: string;
  previous: string;
  scope: string;
}

/** An event of tcompile. */
export type Event =
  | CompileStarted
  | GraphCaptured
  | GraphBroke
  | LoopDecided
  | GuardFailed
  | RecompileStarted
  | PassFinished
  | KernelCompiled
  | CompileFinished
  | CacheHit
  | CacheMiss
  | FellBack
  | CudaGraphSkipped
  | CallTimed
  | LoopTimed
  | StanceChanged;
