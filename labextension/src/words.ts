// Figures in words, the same everywhere.
//
// Enters: numbers. Leaves: text, in the user's language where there is a translation.

import type { TranslationBundle } from "@jupyterlab/translation";

/** Milliseconds as a person reads them. */
export function time(ms: number): string {
  if (ms < 0.001) {
    return "0 ms";
  }
  if (ms < 1) {
    return `${(ms * 1000).toPrecision(3)} µs`;
  }
  return ms < 1000 ? `${Number(ms.toPrecision(3))} ms` : `${Number((ms / 1000).toPrecision(3))} s`;
}

/** Text of bearable length. */
export function short(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** How the counts are said; the JupyterLab language packs may translate them. */
export function counts(trans: TranslationBundle): Record<"graphs" | "breaks" | "recompiles", (n: number) => string> {
  return {
    graphs: (n) => trans._n("%1 graph", "%1 graphs", n),
    breaks: (n) => trans._n("%1 break", "%1 breaks", n),
    recompiles: (n) => trans._n("%1 recompile", "%1 recompiles", n),
  };
}
