// Places boxes in layers, so that edges lead downwards.
//
// Input: the sizes of boxes, and edges between them. Output: corners, and the points through which each edge goes.
// The method is Sugiyama's: layers by the longest path, orders by barycentres, then places as near to the neighbours as
// the order allows. It takes a few hundred milliseconds for 2,000 boxes.

/** Width and height. */
export type Size = readonly [number, number];
/** Across and down. */
export type Point = readonly [number, number];
/** From one box to another, by their numbers. */
export type Edge = readonly [number, number];

/** Where everything is. */
export interface Placed {
  corners: Point[];
  routes: Point[][];
  width: number;
  height: number;
}

const GAP = 22; // between boxes side by side
const RISE = 30; // between layers
const BENDS = 12; // layers that an edge is led around boxes for; a longer one goes straight
const SWEEPS = 8;

/** Lays boxes out. Edges that would lead upwards, in a circle, are drawn and otherwise ignored. */
export function* layout(sizes: readonly Size[], edges: readonly Edge[]): Generator<void, Placed> {
  const forward = acyclic(sizes.length, edges);
  yield;
  const layerOf = layers(sizes.length, forward);
  // Long edges get a place in each layer that they go through.
  const widths = sizes.map(([width]) => width);
  const layer = [...layerOf];
  const chains = edges.map(([from, to]): number[] => {
    const [a, b] = [layerOf[from] ?? 0, layerOf[to] ?? 0];
    const chain = [from];
    if (b - a > 1 && b - a <= BENDS) {
      for (let at = a + 1; at < b; at += 1) {
        chain.push(widths.length);
        widths.push(6);
        layer.push(at);
      }
    }
    return [...chain, to];
  });
  const above: number[][] = widths.map(() => []);
  const below: number[][] = widths.map(() => []);
  for (const chain of chains) {
    for (let n = 1; n < chain.length; n += 1) {
      const [a, b] = [chain[n - 1]!, chain[n]!];
      if (layer[a]! < layer[b]!) {
        below[a]!.push(b);
        above[b]!.push(a);
      }
    }
  }
  yield;
  const rows = yield* order(layer, above, below);
  const across = yield* spread(rows, widths, above, below);
  const tops: number[] = [];
  let height = 0;
  for (const row of rows) {
    tops.push(height);
    height += Math.max(0, ...row.map((box) => sizes[box]?.[1] ?? 0)) + RISE;
  }
  const left = Math.min(...across.map((x, n) => x - widths[n]! / 2), Infinity);
  const corners = sizes.map(([width], n): Point => [across[n]! - width / 2 - left, tops[layer[n]!]!]);
  const routes = chains.map((chain): Point[] => {
    const [from, to] = [chain[0]!, chain[chain.length - 1]!];
    const middle = chain.slice(1, -1).map((n): Point => [across[n]! - left, tops[layer[n]!]! + 10]);
    return [
      [across[from]! - left, tops[layer[from]!]! + sizes[from]![1]],
      ...middle,
      [across[to]! - left, tops[layer[to]!]!],
    ];
  });
  const width = Math.max(0, ...corners.map(([x], n) => x + sizes[n]![0]));
  return { corners, routes, width, height: Math.max(0, height - RISE) };
}

/** The edges without those that close a circle. */
function acyclic(count: number, edges: readonly Edge[]): Edge[] {
  const out: number[][] = Array.from({ length: count }, () => []);
  const state = new Uint8Array(count); // 1: on the way, 2: done
  const back = new Set<string>();
  edges.forEach(([from, to]) => out[from]?.push(to));
  for (let root = 0; root < count; root += 1) {
    const way: [number, number][] = state[root] ? [] : [[root, 0]];
    state[root] ||= 1;
    while (way.length) {
      const step = way[way.length - 1]!;
      const next = out[step[0]]![step[1]++];
      if (next === undefined) {
        state[step[0]] = 2;
        way.pop();
      } else if (state[next] === 1) {
        back.add(`${step[0]} ${next}`);
      } else if (!state[next]) {
        state[next] = 1;
        way.push([next, 0]);
      }
    }
  }
  return edges.filter(([from, to]) => from !== to && !back.has(`${from} ${to}`));
}

/** The layer of each box: as high as what it reads allows; what reads nothing stands right above its first reader. */
function layers(count: number, edges: readonly Edge[]): number[] {
  const out: number[][] = Array.from({ length: count }, () => []);
  const waits = new Array<number>(count).fill(0);
  for (const [from, to] of edges) {
    out[from]!.push(to);
    waits[to]! += 1;
  }
  const sources = waits.flatMap((n, box) => (n ? [] : [box]));
  const layer = new Array<number>(count).fill(0);
  const ready = [...sources];
  for (let n = 0; n < ready.length; n += 1) {
    const box = ready[n]!;
    for (const next of out[box]!) {
      layer[next] = Math.max(layer[next]!, layer[box]! + 1);
      waits[next]! -= 1;
      if (!waits[next]) {
        ready.push(next);
      }
    }
  }
  for (const box of sources) {
    const first = Math.min(...out[box]!.map((next) => layer[next]!));
    layer[box] = Number.isFinite(first) ? first - 1 : 0;
  }
  return layer;
}

/** The boxes of each layer from left to right, with few crossings. */
function* order(layer: number[], above: number[][], below: number[][]): Generator<void, number[][]> {
  const rows: number[][] = Array.from({ length: Math.max(-1, ...layer) + 1 }, () => []);
  layer.forEach((at, box) => rows[at]!.push(box));
  const place = new Array<number>(layer.length).fill(0);
  const number = (row: number[]): void => row.forEach((box, n) => (place[box] = n));
  rows.forEach(number);
  const mean = (around: number[], own: number): number =>
    around.length ? around.reduce((sum, box) => sum + place[box]!, 0) / around.length : own;
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0;
    for (const row of down ? rows : [...rows].reverse()) {
      const wanted = new Map(row.map((box) => [box, mean((down ? above : below)[box]!, place[box]!)]));
      row.sort((a, b) => wanted.get(a)! - wanted.get(b)! || place[a]! - place[b]!);
      number(row);
      yield;
    }
  }
  return rows;
}

/** The middles of all boxes: near to their neighbours, and apart from each other. */
function* spread(rows: number[][], widths: number[], above: number[][], below: number[][]): Generator<void, number[]> {
  const at = new Array<number>(widths.length).fill(0);
  const apart = (a: number, b: number): number => (widths[a]! + widths[b]!) / 2 + GAP;
  for (const row of rows) {
    row.forEach((box, n) => (at[box] = n ? at[row[n - 1]!]! + apart(row[n - 1]!, box) : 0));
    const shift = row.length ? (at[row[0]!]! + at[row[row.length - 1]!]!) / 2 : 0;
    row.forEach((box) => (at[box]! -= shift));
  }
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0;
    for (const row of down ? rows : [...rows].reverse()) {
      const wanted = row.map((box) => {
        const around = (down ? above : below)[box]!;
        return around.length ? around.reduce((sum, other) => sum + at[other]!, 0) / around.length : at[box]!;
      });
      // Two ways to keep apart, one that pushes to the right and one that pushes to the left: their mean does so too.
      const right = [...wanted];
      const left = [...wanted];
      for (let n = 1; n < row.length; n += 1) {
        right[n] = Math.max(right[n]!, right[n - 1]! + apart(row[n - 1]!, row[n]!));
      }
      for (let n = row.length - 2; n >= 0; n -= 1) {
        left[n] = Math.min(left[n]!, left[n + 1]! - apart(row[n]!, row[n + 1]!));
      }
      row.forEach((box, n) => (at[box] = (right[n]! + left[n]!) / 2));
      yield;
    }
  }
  return at;
}
