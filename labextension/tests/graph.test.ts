// Graphs: whether data is one, how it folds, and where its boxes are.

import assert from "node:assert/strict";
import { test } from "node:test";

import { checkGraph as check } from "../src/graph/check.ts";
import type { NodeView } from "../src/generated/displays.ts";
import { layout as layoutSteps } from "../src/graph/layout.ts";
import type { Edge, Placed, Size } from "../src/graph/layout.ts";
import { firstFolds, kernelId, nodeId, partOf, scene as sceneSteps } from "../src/graph/scene.ts";
import type { Scene } from "../src/graph/scene.ts";
import { sliced, whole } from "../src/graph/sliced.ts";
import { graph, node, trans } from "./made.ts";

const layout = (...input: Parameters<typeof layoutSteps>): Placed => whole(layoutSteps(...input));
const scene = (...input: Parameters<typeof sceneSteps>): Scene => whole(sceneSteps(...input));
const checkGraph = (data: unknown): ReturnType<typeof check> => check(data, trans);
const overlap = (boxes: Scene["boxes"]): boolean =>
  boxes.some((a, n) =>
    boxes
      .slice(n + 1)
      .some((b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height),
  );

test("edges lead downwards, boxes do not touch", () => {
  const sizes: Size[] = Array.from({ length: 60 }, (_, n) => [40 + (n % 7) * 10, 30]);
  const edges: Edge[] = [];
  for (let n = 1; n < 60; n += 1) {
    edges.push([Math.floor(n / 2), n], [(n * 7) % n, n]);
  }
  const { corners } = layout(sizes, edges);
  edges.forEach(([from, to]) => assert.ok(corners[from]![1] < corners[to]![1]));
  corners.forEach(([x, y], n) =>
    corners.slice(n + 1).forEach(([a, b], k) => {
      const [width] = sizes[n]!;
      assert.ok(y !== b || x + width <= a || a + sizes[n + 1 + k]![0] <= x);
    }),
  );
});

test("circles are drawn too", () => {
  const edges: Edge[] = [
    [0, 1],
    [1, 0],
    [1, 1],
  ];
  assert.equal(layout([[10, 10] as const, [10, 10] as const], edges).corners.length, 2);
  assert.deepEqual(layout([], []), { corners: [], routes: [], width: 0, height: 0 });
});

test("a kernel is a box around its operations, or one box", () => {
  const made = graph([node("a", ["x"], "k"), node("b", ["a"], "k"), node("c", ["b", "x"])], ["c"]);
  const open = scene(made, new Set());
  const at = (id: string): Scene["boxes"][number] => open.boxes.find((box) => box.id === id)!;
  const [k, a] = [at(kernelId("k")), at(nodeId("a"))];
  assert.ok(k.x < a.x && k.y < a.y && k.x + k.width > a.x + a.width && k.y + k.height > a.y + a.height);
  assert.deepEqual(at(nodeId("c")).inputs.sort(), [kernelId("k"), nodeId("x")]);
  assert.ok(!overlap(open.boxes.filter((box) => !["a", "b"].includes(box.node?.name ?? ""))));
  const folded = scene(made, new Set([kernelId("k")]));
  assert.deepEqual(
    folded.boxes.map((box) => box.id),
    [nodeId("x"), kernelId("k"), nodeId("c"), "output 0"],
  );
});

test("large graphs open folded", () => {
  const many = Array.from({ length: 400 }, (_, n) =>
    node(`n${n}`, n ? [`n${n - 1}`] : ["x"], `k${Math.floor(n / 40)}`),
  );
  const made = graph(many, ["n399"]);
  assert.equal(scene(made, firstFolds(made)).boxes.length, 12);
  assert.equal(firstFolds(graph(many.slice(0, 100), [])).size, 0);
});

test("operations of loops lie inside them", () => {
  const loop = node("loop", ["x"], "", [node("inner", ["x"]), node("more", ["inner"])]);
  const { boxes } = scene(graph([loop], ["loop"]), new Set());
  assert.ok(boxes.some((box) => box.id === `${nodeId("loop")}/${nodeId("more")}`));
});

test("a part of a derivative has the other part's values as inputs", () => {
  const backward = { ...node("c", ["b", "x"], "k"), backward: true };
  const whole = graph([node("a", ["x"], "k"), node("b", ["a"]), backward], ["c"]);
  const [forward, after] = [partOf(whole, false), partOf(whole, true)];
  assert.deepEqual([forward.inputs, forward.nodes, forward.outputs].map(names), [["x"], ["a", "b"], ["b"]]);
  assert.deepEqual([after.inputs, after.nodes, after.outputs].map(names), [["x", "b"], ["c"], ["c"]]);
  assert.deepEqual(
    after.inputs.map(({ sort, inputs }) => [sort, inputs.length]),
    [
      ["input", 0],
      ["input", 0],
    ],
  );
});

const names = (of: (NodeView | string)[]): string[] => of.map((one) => (typeof one === "string" ? one : one.name));

test("two thousand operations are laid out, in slices that leave room for others", async () => {
  const many = Array.from({ length: 2000 }, (_, n) => node(`n${n}`, n ? [`n${n - 1}`, `n${(n * 31) % n}`] : ["x"]));
  const made = graph(many, ["n1999"]);
  let time = 0;
  const slow = (): number => (time += 5); // each step takes 5 ms
  let others = 0;
  const ticking = setInterval(() => (others += 1), 1);
  const drawn = await new Promise<Scene>((resolve) => sliced(sceneSteps(made, new Set()), resolve, slow));
  clearInterval(ticking);
  assert.equal(drawn.boxes.length, 2002);
  assert.ok(others > 1);
});

test("short work is done at once, and work that is given up never ends", async () => {
  const ended: number[] = [];
  const still = (): number => 0;
  sliced(sceneSteps(graph([node("a")], ["a"]), new Set()), ({ boxes }) => ended.push(boxes.length), still);
  assert.deepEqual(ended, [3]);
  let steps = 0;
  const endless = function* (): Generator<void, number> {
    for (;;) {
      steps += 1;
      yield;
    }
  };
  let time = 0;
  const giveUp = sliced(
    endless(),
    () => ended.push(0),
    () => (time += 5),
  );
  giveUp();
  const done = steps;
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual([ended, steps], [[3], done]);
});

test("what is no graph is a line of text, what is half of one is mended", () => {
  for (const bad of [null, 1, "x", {}, { nodes: 3, inputs: [] }]) {
    assert.equal(typeof checkGraph(bad), "string");
  }
  const half = checkGraph({ nodes: [null, { name: 3, inputs: "x", inside: [{}] }], inputs: [], outputs: [1, "a"] });
  assert.ok(typeof half !== "string");
  assert.deepEqual(half.outputs, ["a"]);
  assert.equal(scene(half, new Set()).boxes.length > 0, true);
  const large = checkGraph({ nodes: Array.from({ length: 100_000 }, () => ({})), inputs: [] });
  assert.match(large as string, /100000/);
});
