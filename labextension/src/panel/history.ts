// Why functions were compiled again.
//
// Enters: the recompiles that the model remembers. Leaves: for each what did not hold, the guards of the two entries
// side by side, and what would have avoided it.

import { h } from "../dom.ts";
import type { GuardFailed } from "../generated/events.ts";
import { code } from "../marks.ts";
import type { Recompile } from "../model.ts";
import { short, time } from "../words.ts";
import { note } from "./section.ts";
import type { Frame, Section } from "./section.ts";

/** Recompiles that are listed; of more, the newest. */
const MOST = 100;

/** The section. */
export class History implements Section {
  readonly node = h("div", { class: "tc-section" });

  constructor(private readonly frame: Frame) {}

  draw(): void {
    const { trans, link } = this.frame;
    const steps = [...(link?.model.recompiles ?? [])].slice(-MOST).reverse();
    const dropped = link?.model.dropped ?? 0;
    this.node.replaceChildren(
      ...(steps.length ? [] : [note(trans.__("Nothing has been compiled again."))]),
      ...steps.map((step, n) => this.step(step, n === 0)),
      ...(dropped ? [note(trans._n("%1 earlier event is forgotten", "%1 earlier events are forgotten", dropped))] : []),
    );
  }

  private step(step: Recompile, first: boolean): HTMLElement {
    const { trans } = this.frame;
    const failed = step.failures.length ? step.failures : [];
    const what = failed[0] ? `${failed[0].source}: ${failed[0].expected} → ${failed[0].seen}` : step.reasons[0];
    const ms = step.finished ? time(step.finished.ms) : "";
    const hints = [...new Set(failed.map((failure) => failure.hint).filter(Boolean))];
    return h(
      "details",
      { open: first, class: "tc-step" },
      h(
        "summary",
        {},
        h("b", {}, short(step.function, 40)),
        ` ${short(what ?? "", 60)} `,
        h(
          "span",
          { class: "tc-dim" },
          [new Date(step.time * 1000).toLocaleTimeString(), ms].filter(Boolean).join(", "),
        ),
      ),
      failed.length
        ? h(
            "table",
            { class: "tc-table" },
            h(
              "tr",
              {},
              ...["entry", "guard", "expected", "seen"].map((head) => h("th", { scope: "col" }, trans.__(head))),
            ),
            ...failed.map((failure) => this.failure(failure)),
          )
        : h("div", {}, ...step.reasons.map((reason) => h("pre", {}, reason))),
      ...hints.map((hint) => h("div", { class: "tc-hint" }, ...code(hint))),
      this.sides(step),
    );
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

  /** The guards of the entry that did not fit, and of the one that was made then; what is in both is dim. */
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
