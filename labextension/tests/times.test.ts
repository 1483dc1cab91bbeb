// Profiles in outputs become times of lines; whatever has another shape is left out.

import assert from "node:assert/strict";
import { test } from "node:test";

import { timedLines, total } from "../src/times.ts";

const PROFILE = "application/vnd.tcompile.profile+json";
const REPORT = "application/vnd.tcompile.report+json";

const line = (number: number, text: string, more: object = {}): object => ({
  cell: "a",
  file: "f.py",
  line: number,
  text,
  fused: 1,
  library: 2,
  plain: 0,
  why: "",
  ...more,
});
const profile = (lines: unknown, more: object = {}): object => ({ function: "f", ms: 6, lines, causes: [], ...more });

test("lines have their share and their causes", () => {
  const causes = [
    { kind: "library", text: "`sort` runs in NumPy", cure: "", file: "f.py", line: 2 },
    { kind: "plain", text: "other", cure: "", file: "f.py", line: 3 },
  ];
  const found = timedLines([{ [PROFILE]: profile([line(2, "z = np.sort(y)")], { causes }) }]);
  const [timed] = found.get("a") ?? [];
  assert.equal(timed?.share, 0.5);
  assert.equal(timed && total(timed.time), 3);
  assert.deepEqual(
    timed?.causes.map((cause) => cause.text),
    ["`sort` runs in NumPy"],
  );
});

test("a report's times count, and later ones replace earlier ones", () => {
  const found = timedLines([
    { [REPORT]: { times: profile([line(1, "y = x"), line(2, "z = y", { cell: "b" })]) } },
    { [PROFILE]: profile([line(1, "y = x", { fused: 4 })]) },
    { [REPORT]: { times: null } },
    { "text/plain": "nothing" },
  ]);
  assert.deepEqual(
    [...found].map(([cell, lines]) => [cell, lines.map((one) => one.time.fused)]),
    [
      ["a", [4]],
      ["b", [1]],
    ],
  );
});

test("what has another shape is left out", () => {
  const wrong = [
    null,
    3,
    [],
    profile("no list"),
    profile([null, 3, { cell: "a" }, line(1, "y", { fused: "1" }), line(1, "y", { cell: "" })]),
    { lines: [line(1, "y")] },
  ];
  assert.equal(timedLines(wrong.map((data) => ({ [PROFILE]: data }))).size, 0);
  const found = timedLines([{ [PROFILE]: profile([line(1, "y")], { causes: [null, { line: 1 }], ms: 0 }) }]);
  assert.deepEqual([found.get("a")?.[0]?.causes, found.get("a")?.[0]?.share], [[], 0]);
});
