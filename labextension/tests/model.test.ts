// What the model makes of the kernel's messages.

import assert from "node:assert/strict";
import { test } from "node:test";

import { limits } from "../src/limits.ts";
import { KernelModel, MOST } from "../src/model.ts";
import { PROTOCOL, read } from "../src/protocol.ts";
import type { News } from "../src/protocol.ts";
import { event, mark, news, state, summary } from "./made.ts";

test("the figures of a cell are the kernel's newest", () => {
  const model = new KernelModel();
  model.take(news({ summaries: { a: summary({ graphs: 1, breaks: 1, compile_ms: 5 }), b: summary() } }));
  assert.deepEqual(model.cells.get("a"), summary({ graphs: 1, breaks: 1, compile_ms: 5 }));
  model.take(news({ summaries: { a: summary({ began: 3, graphs: 2 }) } }));
  assert.deepEqual(model.cells.get("a"), summary({ began: 3, graphs: 2 }));
  assert.deepEqual(model.cells.get("b"), summary());
});

test("figures that are not all numbers are left out", () => {
  const figures = { a: { ...summary(), graphs: "1" }, b: summary({ graphs: 1 }), c: 5 };
  const seen = read({ ...news(), summaries: figures }) as News;
  assert.deepEqual(seen.summaries, { b: summary({ graphs: 1 }) });
});

test("a recompile knows which guards did not hold, and how long it took", () => {
  const model = new KernelModel();
  model.take(
    news({
      events: [
        event("guard_failed", { entry: 0, source: "x", expected: "3", seen: "4", compile_id: "" }),
        event("guard_failed", { function: "another", compile_id: "" }),
        event("recompile_started", { compile_id: "0/1", number: 1, reasons: ["x"] }),
        event("compile_finished", { compile_id: "0/1", ms: 7 }),
      ],
    }),
  );
  const [step] = model.recompiles;
  assert.equal(step?.failures.length, 1);
  assert.equal(step?.failures[0]?.seen, "4");
  assert.equal(step?.finished?.ms, 7);
});

test("marks are those of the cell, and go with their function", () => {
  const model = new KernelModel();
  const told: Set<string>[] = [];
  model.listeners.add((change) => told.push(change.cells));
  const functions = [state(1, [mark(2, "y = x", { file: "a.py" }), mark(2, "z", { file: "b.py" })])];
  model.take(news({ functions, alive: [1], cells: { "a.py": "a", "b.py": "b" } }));
  assert.deepEqual(
    model.marks("a").map((one) => one.text),
    ["y = x"],
  );
  assert.deepEqual([...told[0]!].sort(), ["a", "b"]);
  model.take(news({ alive: [2] }));
  assert.deepEqual(model.marks("a"), []);
  assert.deepEqual([...told[1]!].sort(), ["a", "b"]);
});

test("a kernel that is gone leaves nothing behind, and the page is told of its cells", () => {
  const model = new KernelModel();
  model.take(news({ summaries: { a: summary({ graphs: 1 }) }, stances: { default: "" }, whole: true }));
  const told: Set<string>[] = [];
  model.listeners.add((change) => told.push(change.cells));
  model.clear();
  assert.equal(model.cells.size, 0);
  assert.equal(model.stance, "");
  assert.ok(told[0]!.has("a"));
});

test("what is remembered is bounded", () => {
  const model = new KernelModel();
  for (let n = 0; n < 2000; n += 1) {
    const events = [event("graph_captured", { cell: `c${n}` }), event("recompile_started", { compile_id: `0/${n}` })];
    const summaries = { [`c${n}`]: summary() };
    model.take(news({ events, summaries, functions: [state(n)], alive: Array.from({ length: n + 1 }, (_, k) => k) }));
  }
  assert.ok(model.cells.size <= MOST && model.functions.size <= MOST);
  assert.equal(model.recompiles.length, limits.recompiles);
});

test("a kernel of another version is told of in a line, and what is known of it is shown", () => {
  const model = new KernelModel();
  const events = [event("graph_captured"), event("something_new" as never)];
  model.take(news({ schema: 99, events, summaries: { a: summary({ graphs: 1 }) } }));
  assert.deepEqual([model.notice, model.schema], ["events", 99]);
  assert.equal(model.cells.get("a")!.graphs, 1);
  assert.equal(model.unknown, 1);
  model.take(news({ protocol: PROTOCOL + 1 }));
  assert.equal(model.notice, "newer");
});

test("malformed messages are lines of text, malformed parts are left out", () => {
  for (const bad of [null, 3, "x", [], {}, { type: "other" }, { type: "answer" }]) {
    assert.equal(typeof read(bad), "string");
  }
  const got = read({
    type: "news",
    events: [1, {}, event("graph_captured")],
    functions: [{ number: 1 }, { ...state(2), marks: [{ file: 3 }, mark(1, "x")] }],
  });
  assert.ok(typeof got !== "string" && got.type === "news");
  assert.equal(got.events.length, 1);
  assert.deepEqual([got.functions[0]?.number, got.functions[0]?.marks.length], [2, 1]);
  assert.deepEqual([got.functions.length, got.summaries, got.cells, got.malformed], [1, {}, {}, 3]);
});
