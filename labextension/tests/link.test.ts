// The link to a kernel, with a kernel that says what the test wants.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Link } from "../src/link.ts";
import { event, news, summary, trans } from "./made.ts";

type Listener = (sender: unknown, argument: string) => void;

class Signal {
  readonly slots: [Listener, unknown][] = [];
  connect(slot: Listener, self: unknown): void {
    this.slots.push([slot, self]);
  }
  disconnect(): void {}
  emit(argument: string): void {
    this.slots.forEach(([slot, self]) => slot.call(self, null, argument));
  }
}

class Kernel {
  readonly id = "k";
  readonly handleComms = true;
  readonly supportsSubshells = false;
  isDisposed = false;
  status = "idle";
  readonly statusChanged = new Signal();
  readonly connectionStatusChanged = new Signal();
  readonly sent: Record<string, unknown>[] = [];
  readonly known: boolean;
  announce = (): void => {};
  comm: { onMsg?: (message: unknown) => void; onClose?: () => void; isDisposed: boolean } | null = null;

  constructor(known: boolean) {
    this.known = known;
  }
  registerCommTarget(_: string, announced: () => void): void {
    this.announce = announced;
  }
  removeCommTarget(): void {}
  requestCommInfo(): Promise<unknown> {
    return Promise.resolve({ content: { status: "ok", comms: this.known ? { one: {} } : {} } });
  }
  createComm(): unknown {
    const comm = {
      isDisposed: false,
      open: () => {},
      send: (data: Record<string, unknown>) => this.sent.push(data),
      close: () => (comm.isDisposed = true),
      dispose: () => (comm.isDisposed = true),
    };
    this.comm = comm;
    return comm;
  }
  say(data: unknown): void {
    this.comm?.onMsg?.({ content: { data } });
  }
}

const link = (kernel: Kernel): Link => new Link(kernel as never, trans);
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));
const asks = (kernel: Kernel): unknown[] => kernel.sent.map((data) => data.ask);

test("a kernel without tcompile is asked once and left alone", async () => {
  const kernel = new Kernel(false);
  const made = link(kernel);
  made.look(true);
  await settled();
  assert.equal(kernel.comm, null);
  assert.equal(made.connected, false);
  assert.match((await made.ask({ ask: "functions" })).error, /not connected/);
});

test("a page that comes late finds the kernel, and is told everything", async () => {
  const kernel = new Kernel(true);
  const made = link(kernel);
  made.look(true);
  await settled();
  assert.deepEqual(asks(kernel), ["listen"]);
  kernel.say(news({ whole: true, summaries: { a: summary() } }));
  assert.equal(made.model.cells.size, 1);
});

test("nothing is asked while nothing is shown", async () => {
  const kernel = new Kernel(true);
  const made = link(kernel);
  await settled();
  assert.deepEqual(asks(kernel), []);
  made.look(true);
  made.look(false);
  made.look(false);
  assert.deepEqual(asks(kernel), ["listen", "quiet"]);
});

test("a restart forgets what was, and the kernel's next word connects again", async () => {
  const kernel = new Kernel(true);
  const made = link(kernel);
  made.look(true);
  await settled();
  kernel.say(news({ events: [event("graph_captured")] }));
  kernel.statusChanged.emit("restarting");
  assert.equal(made.model.cells.size, 0);
  assert.equal(made.connected, false);
  kernel.announce();
  assert.equal(made.connected, true);
  assert.deepEqual(asks(kernel), ["listen", "listen"]);
});

test("word of a restart that comes after the new kernel's is not its end", async () => {
  const kernel = new Kernel(true);
  const made = link(kernel);
  made.look(true);
  await settled();
  kernel.announce();
  kernel.statusChanged.emit("restarting");
  assert.equal(made.connected, false);
  kernel.statusChanged.emit("idle");
  await settled();
  assert.equal(made.connected, true);
  kernel.statusChanged.emit("idle");
  await settled();
  assert.deepEqual(asks(kernel), ["listen", "listen", "listen"]);
});

test("questions get their own answers", async () => {
  const kernel = new Kernel(true);
  const made = link(kernel);
  await settled();
  const [one, two] = [made.ask({ ask: "functions" }), made.ask({ ask: "graph", number: 1, entry: 2 })];
  const [first, second] = kernel.sent;
  kernel.say({ type: "answer", question: second!.question, error: "gone" });
  kernel.say({ type: "answer", question: first!.question, functions: [] });
  kernel.say({ type: "answer", question: 99 });
  assert.equal((await two).error, "gone");
  assert.deepEqual((await one).functions, []);
});

test("a kernel that dies in the middle answers all that was asked", async () => {
  const kernel = new Kernel(true);
  const made = link(kernel);
  await settled();
  const asked = made.ask({ ask: "functions" });
  kernel.status = "dead";
  kernel.statusChanged.emit("dead");
  assert.notEqual((await asked).error, "");
});

test("what cannot be read is logged once", async (context) => {
  const kernel = new Kernel(true);
  const warn = context.mock.method(console, "warn", () => {});
  const made = link(kernel);
  await settled();
  for (let n = 0; n < 5; n += 1) {
    kernel.say(7);
    kernel.say({ type: "nonsense" });
  }
  assert.equal(warn.mock.callCount(), 2);
  for (let n = 0; n < 3; n += 1) {
    kernel.say(news({ events: [event("something_new" as never), 7 as never] }));
  }
  assert.equal(warn.mock.callCount(), 4); // what is no event, and what is a new one
  kernel.say(news({ summaries: { a: summary() } }));
  assert.equal(made.model.cells.size, 1);
});
