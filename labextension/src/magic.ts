// The `%%tcompile` line of a cell.
//
// Input: the text of a cell. Output: the text with the magic and an option. What the commands add stays in the cell, so
// that a saved notebook runs as it was seen.

const MAGIC = /^%%tcompile(?=\s|$)/;

/**
 * Returns the text of a cell with `%%tcompile` and an option, such as "--time"; "" is the magic alone. Returns null for a
 * cell that another magic runs.
 */
export function withMagic(source: string, option: string): string | null {
  const lines = source.split("\n");
  const first = lines.findIndex((line) => line.trim() !== "");
  const line = lines[first] ?? "";
  if (MAGIC.test(line)) {
    const has = option === "" || line.split(/\s+/).includes(option);
    return has
      ? source
      : [...lines.slice(0, first), `${line.trimEnd()} ${option}`, ...lines.slice(first + 1)].join("\n");
  }
  return line.startsWith("%%") ? null : [`%%tcompile ${option}`.trimEnd(), ...lines].join("\n");
}
