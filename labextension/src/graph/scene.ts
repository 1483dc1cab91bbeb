// The boxes and edges of a graph, with kernels and sub-graphs as groups, open or folded.
//
// Input: the data of a graph, and which of its groups are folded. Output: boxes and routes in the coordinates of one
// picture, computed in time slices (`sliced`). Knows nothing of the page.

import type { GraphView, NodeView } from "../generated/displays.ts";
import { limits } from "../limits.ts";
import { layout } from "./layout.ts";
import type { Edge, Point } from "./layout.ts";

/** A box: an input, an operation, an output, or a group of operations. */
export interface Box {
  id: string;
  sort: string;
  title: string;
  detail: string;
  node: NodeView | null;
  kernel: string; // the name, where the box is a kernel
  folded: boolean | null; // null where there is nothing to fold
  count: number; // operations inside
  x: number;
  y: number;
  width: number;
  height: number;
  inputs: string[]; // ids of the boxes that it reads
}

/** The picture: groups stand before what is in them. */
export interface Scene {
  boxes: Box[];
  routes: { from: string; to: string; points: Point[] }[];
  width: number;
  height: number;
}

const EM = 7.3;
const PAD = 12;
const HEAD = 24; // the title of an open group
const LONGEST = 30;

/** A graph without the operations of its other part; values of that part are inputs. */
export function partOf(graph: GraphView, backward: boolean): GraphView {
  const nodes = graph.nodes.filter((node) => node.backward === backward);
  const others = graph.nodes.filter((node) => node.backward !== backward);
  const read = new Set(nodes.flatMap((node) => node.inputs));
  const wanted = new Set([...graph.outputs, ...others.flatMap((node) => node.inputs)]);
  const given = { op: "input", sort: "input", call: "", inputs: [], kernel: "", inside: [] };
  const foreign = others.filter((node) => read.has(node.name)).map((node) => ({ ...node, ...given }));
  return {
    ...graph,
    inputs: [...graph.inputs.filter((node) => read.has(node.name)), ...foreign],
    nodes,
    outputs: nodes.map((node) => node.name).filter((name) => wanted.has(name)),
    kernels: [...new Set(nodes.map((node) => node.kernel).filter(Boolean))],
  };
}

/** The groups of a graph that are folded when it is opened. */
export function firstFolds(graph: GraphView): Set<string> {
  const folds = new Set<string>();
  if (graph.nodes.length > limits.foldFrom) {
    graph.kernels.forEach((kernel) => folds.add(kernelId(kernel)));
  }
  const loops = (nodes: NodeView[]): void => {
    for (const node of nodes) {
      if (node.inside.length > limits.foldFrom) {
        folds.add(nodeId(node.name));
      }
      loops(node.inside);
    }
  };
  loops(graph.nodes);
  return folds;
}

/** The picture of a graph. */
export function* scene(graph: GraphView, folds: ReadonlySet<string>): Generator<void, Scene> {
  const members: Member[] = [];
  const kernels = new Map<string, Member[]>();
  for (const node of graph.inputs) {
    members.push({ node, inside: [], kernel: "" });
  }
  for (const node of graph.nodes) {
    const made: Member = { node, inside: node.inside.map((inner) => member(inner)), kernel: "" };
    const held = kernels.get(node.kernel);
    if (node.kernel === "") {
      members.push(made);
    } else if (held) {
      held.push(made);
    } else {
      const inside = [made];
      kernels.set(node.kernel, inside);
      members.push({ node: null, inside, kernel: node.kernel });
    }
  }
  const drawn = yield* draw(members, folds, "");
  const outputs = graph.outputs.map((name, n): Part => output(name, n, graph.outputs.length, drawn.home));
  return yield* arrange([...drawn.parts, ...outputs]);
}

/** The id of the box of a value. */
export function nodeId(name: string): string {
  return `node ${name}`;
}

/** The id of the box of a kernel. */
export function kernelId(name: string): string {
  return `kernel ${name}`;
}

interface Member {
  node: NodeView | null;
  inside: Member[];
  kernel: string;
}

/** A box that has its size, with the placed boxes inside it, if it is open. */
interface Part {
  box: Box;
  inner: Scene | null;
}

function member(node: NodeView): Member {
  return { node, inside: node.inside.map((inner) => member(inner)), kernel: "" };
}

/** The parts of one level. `home` says in which of their boxes each value is made. */
function* draw(
  members: Member[],
  folds: ReadonlySet<string>,
  path: string,
): Generator<void, { parts: Part[]; home: Map<string, string> }> {
  const home = new Map<string, string>();
  const ids = members.map(({ node, kernel }) => path + (node === null ? kernelId(kernel) : nodeId(node.name)));
  members.forEach(({ node, inside }, n) => {
    for (const name of node === null ? inside.map((inner) => inner.node?.name ?? "") : [node.name]) {
      home.set(name, ids[n]!);
    }
  });
  const parts: Part[] = [];
  for (const [n, one] of members.entries()) {
    const id = ids[n]!;
    const read = new Set<string>();
    reads(one, read);
    const inputs = [...new Set([...read].map((name) => home.get(name) ?? ""))].filter((from) => from && from !== id);
    const folded = one.inside.length ? folds.has(id) : null;
    const within = one.node === null ? "" : `${id}/`;
    const inner = folded === false ? yield* arrange((yield* draw(one.inside, folds, within)).parts) : null;
    parts.push(part(one, id, folded, inner, inputs));
    yield;
  }
  return { parts, home };
}

/** Returns the values that a member reads, its own results included. */
function reads({ node, inside }: Member, read: Set<string>): void {
  node?.inputs.forEach((name) => read.add(name));
  inside.forEach((inner) => reads(inner, read));
}

function part(
  { node, inside, kernel }: Member,
  id: string,
  folded: boolean | null,
  inner: Scene | null,
  inputs: string[],
): Part {
  const count = inside.length;
  const title = node === null ? kernel : node.op === "input" ? node.name : node.op;
  const detail = node === null || folded === true ? `${count} ${count === 1 ? "op" : "ops"}` : node.type;
  const width = Math.max(6, Math.min(LONGEST, Math.max(title.length, detail.length))) * EM + 2 * PAD;
  const box: Box = {
    id,
    sort: node === null ? "kernel" : node.sort,
    title: cut(title),
    detail: cut(detail),
    node,
    kernel,
    folded,
    count,
    x: 0,
    y: 0,
    width: inner === null ? width : Math.max(width + 20, inner.width + 2 * PAD),
    height: inner === null ? (detail ? 42 : 28) : inner.height + HEAD + 2 * PAD,
    inputs,
  };
  return { box, inner };
}

function output(name: string, n: number, all: number, home: Map<string, string>): Part {
  const from = home.get(name);
  const title = all === 1 ? "output" : `output ${n}`;
  const box: Box = {
    id: `output ${n}`,
    sort: "output",
    title,
    detail: "",
    node: null,
    kernel: "",
    folded: null,
    count: 0,
    x: 0,
    y: 0,
    width: title.length * EM + 2 * PAD,
    height: 28,
    inputs: from === undefined ? [] : [from],
  };
  return { box, inner: null };
}

/** Places parts beside and below each other, with their contents. */
function* arrange(parts: Part[]): Generator<void, Scene> {
  const number = new Map(parts.map(({ box }, n) => [box.id, n]));
  const edges: Edge[] = [];
  parts.forEach(({ box }, to) => {
    for (const id of box.inputs) {
      const from = number.get(id);
      if (from !== undefined) {
        edges.push([from, to]);
      }
    }
  });
  const sizes = parts.map(({ box }) => [box.width, box.height] as const);
  const placed = yield* layout(sizes, edges);
  const boxes: Box[] = [];
  const routes: Scene["routes"] = edges.map(([from, to], n) => ({
    from: parts[from]!.box.id,
    to: parts[to]!.box.id,
    points: placed.routes[n]!,
  }));
  parts.forEach(({ box, inner }, n) => {
    const [x, y] = placed.corners[n]!;
    boxes.push({ ...box, x, y });
    if (inner !== null) {
      const [dx, dy] = [x + (box.width - inner.width) / 2, y + HEAD + PAD];
      boxes.push(...inner.boxes.map((one) => ({ ...one, x: one.x + dx, y: one.y + dy })));
      for (const route of inner.routes) {
        routes.push({ ...route, points: route.points.map(([a, b]): Point => [a + dx, b + dy]) });
      }
    }
  });
  return { boxes, routes, width: placed.width, height: placed.height };
}

function cut(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}
