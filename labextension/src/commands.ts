// The commands of the palette. Shortcuts stand in `schema/plugin.json`.
//
// Input: what the parts can do. Output: commands in JupyterLab, each with a name and, where it is a switch, its state.

import type { JupyterFrontEnd } from "@jupyterlab/application";
import type { ICommandPalette } from "@jupyterlab/apputils";
import type { TranslationBundle } from "@jupyterlab/translation";

import type { Link } from "./link.ts";

/** The stances, as `tcompile.set_stance` takes them. */
const STANCES = [
  "default",
  "force_eager",
  "eager_on_recompile",
  "fail_on_recompile",
  "eager_then_compile",
  "aot_eager_then_compile",
];

/** What can be switched on and off. */
export type Switch = "marks" | "badges" | "stance";

/** What the commands do. */
export interface Parts {
  panel(): void;
  nextBreak(): boolean;
  runCell(option: string): void;
  inNotebook(): boolean;
  link(): Link | null;
  toggle(name: Switch): void;
  toggled(name: Switch): boolean;
}

/** Adds the commands. */
export function addCommands(
  { commands }: JupyterFrontEnd,
  palette: ICommandPalette | null,
  trans: TranslationBundle,
  parts: Parts,
): void {
  const category = "tcompile";
  const add = (id: string, options: Parameters<typeof commands.addCommand>[1]): void => {
    commands.addCommand(`tcompile:${id}`, options);
    palette?.addItem({ command: `tcompile:${id}`, category });
  };
  const connected = (): boolean => parts.link()?.connected ?? false;
  const set = (stance: string): void => void parts.link()?.ask({ ask: "stance", stance });
  add("panel", { label: trans.__("Show the tcompile panel"), execute: () => parts.panel() });
  add("next-break", {
    label: trans.__("Go to the Next Graph Break in This Cell"),
    isEnabled: connected,
    execute: () => parts.nextBreak(),
  });
  const cell: [string, string, string][] = [
    ["compile-cell", "", trans.__("Compile This Cell")],
    ["time-cell", "--time", trans.__("Time This Cell, Line by Line")],
    ["compare-cell", "--compare", trans.__("Compare This Cell with Plain Python")],
    ["explain-cell", "--explain", trans.__("Explain This Cell")],
  ];
  for (const [id, option, label] of cell) {
    const caption = trans.__("Adds %1 to the cell and runs it", `%%tcompile ${option}`.trimEnd());
    add(id, { label, caption, isEnabled: parts.inNotebook, execute: () => parts.runCell(option) });
  }
  add("toggle-eager", {
    label: trans.__("Switch Between Plain Python and Compiled Code"),
    isEnabled: connected,
    execute: () => set(parts.link()?.model.stance === "force_eager" ? "default" : "force_eager"),
  });
  for (const stance of STANCES) {
    add(`stance-${stance}`, {
      label: trans.__("Stance: %1", stance),
      isEnabled: connected,
      isToggled: () => parts.link()?.model.stance === stance,
      execute: () => set(stance),
    });
  }
  const switches: [Switch, string][] = [
    ["marks", trans.__("Show Marks at Lines")],
    ["badges", trans.__("Show Badges under Cells")],
    ["stance", trans.__("Show the Stance in Toolbar and Status Bar")],
  ];
  for (const [name, label] of switches) {
    add(`toggle-${name}`, { label, isToggled: () => parts.toggled(name), execute: () => parts.toggle(name) });
  }
}
