// Marks stand at the code that they speak of, or nowhere.

import assert from "node:assert/strict";
import { test } from "node:test";

import { locate } from "../src/placing.ts";
import type { Mark } from "../src/protocol.ts";
import { mark } from "./made.ts";

const place = (lines: string[], ...marks: Mark[]): number[] =>
  locate(
    lines,
    marks.map((one) => ({ mark: one, at: one.line })),
  ).placed.map((at) => at.line);

test("a mark goes to its line", () => {
  assert.deepEqual(place(["def f(x):", "    return x"], mark(2, "return x")), [2]);
});

test("empty first lines of a cell are not counted by the kernel", () => {
  assert.deepEqual(place(["", "", "def f(x):", "    return x"], mark(2, "return x")), [4]);
});

test("a line that was moved is found where it is alone", () => {
  assert.deepEqual(place(["a", "b", "y = x"], mark(1, "y = x")), [3]);
  assert.deepEqual(place(["a", "y = x", "y = x"], mark(1, "y = x")), []);
});

test("a line that was changed has no mark", () => {
  assert.deepEqual(place(["y = z"], mark(1, "y = x")), []);
  assert.deepEqual(place([""], mark(1, "")), []);
});

test("of several marks at a line the worst is shown", () => {
  const { placed } = locate(
    ["y = x"],
    (["broken", "captured", "plain"] as const).map((state) => ({ mark: mark(1, "y = x", { state }), at: 1 })),
  );
  assert.deepEqual(
    placed.map((at) => at.mark.state),
    ["broken"],
  );
});

test("what is underlined lies within the line", () => {
  const stretch = (more: Partial<Mark>): number[] => {
    const { placed } = locate(["    print(x)"], [{ mark: mark(1, "print(x)", more), at: 1 }]);
    return [placed[0]!.from, placed[0]!.to];
  };
  assert.deepEqual(stretch({ column: 4, end_column: 9 }), [4, 9]);
  assert.deepEqual(stretch({ column: 4, end_column: 900 }), [4, 12]);
  assert.deepEqual(stretch({}), [4, 12]);
});
