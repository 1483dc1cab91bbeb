// What profiles in a notebook's outputs say of its lines.
//
// Input: the data of outputs, oldest run first. Output: for each cell, the times of its lines, with what takes them.
// Outputs are saved with a notebook, so this needs no kernel. They may come from anybody: whatever has not the expected
// shape is left out.

import type { Cause, LineTime, ProfileView } from "./generated/displays.ts";

const PROFILE = "application/vnd.tcompile.profile+json";
const REPORT = "application/vnd.tcompile.report+json";

/** The time of a line, and the profile that has measured it. */
export interface TimedLine {
  time: LineTime;
  share: number; // of the profiled call or cell, 0 to 1
  of: string; // the name of what was profiled
  causes: Cause[];
}

/** The milliseconds of each kind, in the order of the gutter's bar. */
export const KINDS = ["fused", "library", "plain"] as const;

/** Returns the timed lines by the cell that they are in. A later profile of a line replaces an earlier one. */
export function timedLines(outputs: Iterable<Record<string, unknown>>): Map<string, TimedLine[]> {
  const found = new Map<string, Map<string, TimedLine>>();
  for (const data of outputs) {
    const profile = read(data[PROFILE]) ?? read((data[REPORT] as { times?: unknown } | undefined)?.times);
    for (const time of profile?.lines ?? []) {
      const lines = found.get(time.cell) ?? new Map<string, TimedLine>();
      const causes = profile!.causes.filter((cause) => cause.file === time.file && cause.line === time.line);
      const share = profile!.ms > 0 ? Math.min(1, total(time) / profile!.ms) : 0;
      lines.set(`${time.line} ${time.text}`, { time, share, of: profile!.function, causes });
      found.set(time.cell, lines);
    }
  }
  return new Map([...found].map(([cell, lines]) => [cell, [...lines.values()]]));
}

/** The milliseconds of a line, all kinds together. */
export function total(time: LineTime): number {
  return time.fused + time.library + time.plain;
}

function read(data: unknown): ProfileView | null {
  if (!isRecord(data) || !Array.isArray(data.lines) || typeof data.ms !== "number") {
    return null;
  }
  const lines = data.lines.filter(
    (line): line is LineTime =>
      isRecord(line) &&
      typeof line.cell === "string" &&
      line.cell !== "" &&
      typeof line.text === "string" &&
      typeof line.why === "string" &&
      ["line", ...KINDS].every((key) => typeof line[key] === "number"),
  );
  const causes = (Array.isArray(data.causes) ? data.causes : []).filter(
    (cause): cause is Cause =>
      isRecord(cause) &&
      typeof cause.text === "string" &&
      typeof cause.cure === "string" &&
      typeof cause.line === "number",
  );
  return { ...(data as unknown as ProfileView), function: String(data.function), lines, causes };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
