// Why functions were compiled again.
//
// Input: the recompiles that the model remembers. Output: for each the failed guard, the guards of the two entries
// side by side, and a hint.

import { code, h, keep } from "../dom.ts";
import type { GuardFailed } from "../generated/events.ts";

import type { Recompile } from "../model.ts";
import { short, time } from "../words.ts";
import { folded, guarded, note } from "./section.ts";
import type { Frame, Section } from "./section.ts";

/** Recompiles that are listed; of more, the newest. */
const MOST = 100;

/** The section. The newest step is unfolded, until another one comes; so are those that the user has unfolded. */
export class History implements Section {
  readonly node = h("div", { class: "tc-section" });
  private readonly open = new WeakMap<Recompile, boolean>();
  private readonly drawn = new WeakMap<Recompile, { finished: boolean; open: boolean; node: HTMLElement }>();
  private readonly empty: HTMLElement;
  private readonly forgotten = note("");

  constructor(private readonly frame: Frame) {
    this.empty = note(frame.trans.__("Nothing has been compiled again."));
  }

  draw(): void {
    const { trans, link } = this.frame;
    const steps = [...(link?.model.recompiles ?? [])].slice(-MOST).reverse();
    const dropped = link?.model.dropped ?? 0;
    const text = dropped ? trans._n("%1 earlier event is forgotten", "%1 earlier events are forgotten", dropped) : "";
    if (this.forgotten.textContent !== text) {
      this.forgotten.textContent = text;
    }
    const made = steps.map((step, n) => this.made(step, this.open.get(step) ?? n === 0));
    keep(this.node, [...(steps.length ? made : [this.empty]), this.forgotten]);
  }

  /** A step as it was drawn, where nothing about it has changed. */
  private made(step: Recompile, open: boolean): HTMLElement {
    const finished = step.finished !== null;
    const drawn = this.drawn.get(step);
    if (drawn && drawn.finished === finished && drawn.open === open) {
      return drawn.node;
    }
    const node = guarded(this.frame, () => this.step(step, open));
    this.drawn.set(step, { finished, open, node });
    return node;
  }

  private step(step: Recompile, open: boolean): HTMLElement {
    const { trans } = this.frame;
    const [first] = step.failures;
    const what = first ? `${first.source}: ${first.expected} → ${first.seen}` : (step.reasons[0]?.split("\n")[0] ?? "");
    const facts = [
      new Date(step.time * 1000).toLocaleTimeString(),
      step.finished ? trans.__("compiled in %1", time(step.finished.ms)) : "",
    ];
    const summary = [
      h("b", {}, short(step.function, 40)),
      ` ${short(what, 60)} `,
      h("span", { class: "tc-dim" }, facts.filter(Boolean).join(", ")),
    ];
    const opens = (open: boolean): void => {
      this.open.set(step, open);
      const drawn = this.drawn.get(step);
      drawn && (drawn.open = open);
    };
    const node = folded(this.frame, summary, open, () => this.about(step), opens);
    node.classList.add("tc-step");
    return node;
  }

  private about(step: Recompile): (HTMLElement | null)[] {
    const { trans } = this.frame;
    const { failures, reasons } = step;
    const heads = [trans.__("entry"), trans.__("guard"), trans.__("expected"), trans.__("seen")];
    const head = h("tr", {}, ...heads.map((name) => h("th", { scope: "col" }, name)));
    const hints = [...new Set(failures.map((failure) => failure.hint).filter(Boolean))];
    return [
      failures.length
        ? h("table", { class: "tc-table" }, head, ...failures.map((failure) => this.failure(failure)))
        : h("div", {}, ...reasons.map((reason) => h("pre", {}, reason))),
      ...hints.map((hint) => h("div", { class: "tc-hint" }, ...code(hint))),
      this.sides(step),
    ];
  }

  private failure(failure: GuardFailed): HTMLElement {
    const { entry, guard, expected, seen } = failure;
    return h(
      "tr",
      {},
      h("td", {}, entry),
      ...[guard, expected, seen].map((text) => h("td", {}, h("code", {}, short(text, 200)))),
    );
  }

  /** The guards of the entry that missed, and of the new one; common guards are dim. */
  private sides(step: Recompile): HTMLElement | null {
    const [number, made] = step.compileId.split("/").map(Number);
    const entries = this.frame.link?.model.functions.get(number ?? -1)?.view.entries ?? [];
    const old = entries.find((entry) => entry.number === step.failures[0]?.entry);
    const now = entries.find((entry) => entry.number === made);
    if (!old || !now) {
      return null;
    }
    const { trans } = this.frame;
    const list = (guards: string[], other: string[]): HTMLElement[] =>
      guards.map((text) => h("li", { class: other.includes(text) ? "tc-dim" : "tc-differs" }, h("code", {}, text)));
    return h(
      "div",
      { class: "tc-sides" },
      h(
        "div",
        {},
        h("div", { class: "tc-label" }, trans.__("entry %1", old.number)),
        h("ul", { class: "tc-guards" }, ...list(old.guards, now.guards)),
      ),
      h(
        "div",
        {},
        h("div", { class: "tc-label" }, trans.__("entry %1", now.number)),
        h("ul", { class: "tc-guards" }, ...list(now.guards, old.guards)),
      ),
    );
  }
}
