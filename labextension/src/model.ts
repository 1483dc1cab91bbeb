// The state of one kernel.
//
// Input: the kernel's messages. Output: its functions, what happened in each cell, the marks of each cell, and the
// recompiles, all of it bounded. Knows neither JupyterLab nor the page, so that it is tested without either.

import { VERSION } from "./generated/events.ts";
import type { CompileFinished, Event, GuardFailed } from "./generated/events.ts";
import { limits } from "./limits.ts";
import { mismatch } from "./protocol.ts";
import type { CellSummary, FunctionState, Mark, Mismatch, News } from "./protocol.ts";

/** Maximum of remembered cells and functions; the oldest are dropped. */
export const MOST = 1000;
/** The name under which events speak of a cell's own statements. */
export const CELL = "<cell>";

/** A step of a function's history: the failed guards, and the new entry. */
export interface Recompile {
  function: string;
  compileId: string;
  time: number;
  failures: GuardFailed[];
  reasons: string[];
  cell: string | null;
  finished: CompileFinished | null;
}

/** What has changed: cells by id, or everything. */
export interface Change {
  cells: Set<string>;
  functions: boolean;
  stance: boolean;
}

/** One kernel as the page knows it. */
export class KernelModel {
  readonly functions = new Map<number, FunctionState>();
  readonly cells = new Map<string, CellSummary>();
  readonly recompiles: Recompile[] = [];
  stance = "";
  stances: Record<string, string> = {};
  notice: Mismatch = "";
  schema = 0;
  dropped = 0;
  unknown = 0;
  readonly listeners = new Set<(change: Change) => void>();
  private files: Record<string, string> = {};
  private failures: GuardFailed[] = [];
  private last = -1; // the id of the newest event

  /** Applies a message of the kernel. */
  take(news: News): void {
    const change: Change = { cells: new Set(), functions: false, stance: false };
    if (news.whole) {
      this.forget(change);
    }
    this.notice = mismatch(news.protocol, news.schema, VERSION);
    this.schema = news.schema;
    this.dropped = news.dropped;
    for (const [file, cell] of Object.entries(news.cells)) {
      this.files[file] = cell;
    }
    for (const event of news.events) {
      if (event.id > this.last) {
        this.last = event.id;
        this.event(event);
      }
    }
    for (const [cell, summary] of Object.entries(news.summaries)) {
      put(this.cells, cell, summary);
      change.cells.add(cell);
    }
    for (const state of news.functions) {
      this.function(state, change);
    }
    this.bury(new Set(news.alive), change);
    if (news.stance !== this.stance || Object.keys(news.stances).length) {
      change.stance = true;
      this.stance = news.stance;
      this.stances = Object.keys(news.stances).length ? news.stances : this.stances;
    }
    this.tell(change);
  }

  /** Applies the current functions, with their counts. */
  count(functions: FunctionState[]): void {
    const change: Change = { cells: new Set(), functions: false, stance: false };
    functions.forEach((state) => this.function(state, change));
    this.tell(change);
  }

  /** Discards everything: the kernel was restarted, or has ended. */
  clear(): void {
    const change: Change = { cells: new Set(), functions: true, stance: true };
    this.forget(change);
    this.notice = "";
    this.stance = "";
    this.tell(change);
  }

  /** Returns the marks of a cell's lines, for this text and earlier ones; `placing` selects the valid ones. */
  marks(cell: string): Mark[] {
    const all: Mark[] = [];
    for (const { marks } of this.functions.values()) {
      all.push(...marks.filter((mark) => this.files[mark.file] === cell));
    }
    return all;
  }

  /** Returns the cell of a file of code; "" for any other file. */
  cellOf(file: string): string {
    return this.files[file] ?? "";
  }

  private tell(change: Change): void {
    for (const listener of this.listeners) {
      listener(change);
    }
  }

  private forget(change: Change): void {
    for (const cell of [...this.cells.keys(), ...Object.values(this.files)]) {
      change.cells.add(cell);
    }
    change.functions = true;
    this.functions.clear();
    this.cells.clear();
    this.recompiles.length = 0;
    this.failures = [];
    this.files = {};
    this.last = -1;
    this.unknown = 0;
  }

  private function(state: FunctionState, change: Change): void {
    put(this.functions, state.number, state);
    change.functions = true;
    for (const file of new Set(state.marks.map((mark) => mark.file))) {
      change.cells.add(this.cellOf(file));
    }
  }

  /** Drops functions that the kernel no longer has, because they were redefined or reset. */
  private bury(alive: Set<number>, change: Change): void {
    for (const [number, state] of this.functions) {
      if (!alive.has(number)) {
        this.functions.delete(number);
        change.functions = true;
        state.marks.forEach((mark) => change.cells.add(this.cellOf(mark.file)));
      }
    }
  }

  private event(event: Event): void {
    switch (event.kind) {
      case "compile_finished": {
        const step = this.recompiles.findLast((step) => step.compileId === event.compile_id);
        if (step) {
          step.finished = event;
        }
        break;
      }
      case "guard_failed":
        this.failures = [...this.failures.slice(-50), event];
        break;
      case "recompile_started":
        this.recompile(event.function, event.compile_id, event.time, event.reasons, event.cell);
        break;
      case "graph_captured":
      case "graph_broke":
      case "kernel_compiled":
      case "fell_back":
      case "stance_changed":
      case "compile_started":
      case "pass_finished":
      case "loop_decided":
      case "cache_hit":
      case "cache_miss":
      case "call_timed":
      case "loop_timed":
        break;
      default:
        this.unknown += 1;
    }
  }

  private recompile(name: string, compileId: string, time: number, reasons: string[], cell: string | null): void {
    const failures = this.failures.filter((failure) => failure.function === name);
    this.failures = this.failures.filter((failure) => failure.function !== name);
    this.recompiles.push({ function: name, compileId, time, failures, reasons, cell, finished: null });
    this.recompiles.splice(0, Math.max(0, this.recompiles.length - limits.recompiles));
  }
}

/** Sets a key as the newest one, and drops the oldest beyond the limit. */
function put<K, V>(map: Map<K, V>, key: K, value: V): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > MOST) {
    const [oldest] = map.keys();
    map.delete(oldest as K);
  }
}
