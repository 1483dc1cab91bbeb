// Formats figures as text.
//
// Input: numbers. Output: text, in the user's language where there is a translation.

import type { TranslationBundle } from "@jupyterlab/translation";

import { VERSION } from "./generated/events.ts";
import type { KernelModel } from "./model.ts";

/** Formats milliseconds. */
export function time(ms: number): string {
  if (ms < 0.001) {
    return "0 ms";
  }
  if (ms < 1) {
    return `${(ms * 1000).toPrecision(3)} µs`;
  }
  return ms < 1000 ? `${Number(ms.toPrecision(3))} ms` : `${Number((ms / 1000).toPrecision(3))} s`;
}

/** Returns a remark on a kernel of another version; "" if there is none. */
export function mismatched(trans: TranslationBundle, { notice, schema }: KernelModel): string {
  return {
    "": "",
    newer: trans.__("This kernel's tcompile is newer than this panel: install the same version for both."),
    older: trans.__("This kernel's tcompile is older than this panel: install the same version for both."),
    events: trans.__(
      "This kernel's events are of version %1, this panel reads version %2: some are not shown.",
      schema,
      VERSION,
    ),
  }[notice];
}

/** Shortens text. */
export function short(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** The texts of counts; the JupyterLab language packs may translate them. */
export function counts(trans: TranslationBundle): Record<"graphs" | "breaks" | "recompiles", (n: number) => string> {
  return {
    graphs: (n) => trans._n("%1 graph", "%1 graphs", n),
    breaks: (n) => trans._n("%1 break", "%1 breaks", n),
    recompiles: (n) => trans._n("%1 recompile", "%1 recompiles", n),
  };
}
