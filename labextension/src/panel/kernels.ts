// One kernel: the user's lines, its operations, its intermediate code and its machine code.
//
// Enters: the entry that is chosen, and which of its kernels; the listings, which are asked for. Leaves: text.

import { h } from "../dom.ts";
import type { KernelView } from "../generated/displays.ts";
import { chooser, choices, lineButton, note } from "./section.ts";
import type { Frame, Section } from "./section.ts";

/** Characters of a listing that are shown. */
const LONGEST = 200_000;

/** The section. */
export class Kernels implements Section {
  readonly node = h("div", { class: "tc-section" });
  private readonly head = h("div", { class: "tc-row" });
  private readonly body = h("div", {});
  private drawn = "";

  constructor(private readonly frame: Frame) {
    this.node.append(this.head, this.body);
  }

  draw(): void {
    const { frame } = this;
    const { trans } = frame;
    const select = chooser(frame, () => this.draw());
    const { choice } = frame;
    const entry = choices(frame).find(
      (one) => one.choice.number === choice?.number && one.choice.entry === choice.entry,
    );
    const kernels = entry?.entry.kernels ?? [];
    if (!select || !choice || !kernels.length) {
      this.drawn = "";
      this.head.replaceChildren(...(select ? [select] : []));
      this.body.replaceChildren(note(trans.__("No kernel has been compiled here.")));
      return;
    }
    const kernel = kernels.includes(choice.kernel ?? "") ? choice.kernel! : kernels[0]!;
    const which = h(
      "select",
      {
        class: "tc-select",
        "aria-label": trans.__("Kernel"),
        change: () => {
          frame.choice = { ...choice, kernel: which.value };
          this.draw();
        },
      },
      ...kernels.map((name) => h("option", { value: name }, name)),
    );
    which.value = kernel;
    this.head.replaceChildren(select, which);
    void this.fetch(choice.number, choice.entry, kernel);
  }

  private async fetch(number: number, entry: number, kernel: string): Promise<void> {
    const { link, trans } = this.frame;
    const key = `${link?.kernel.id} ${number}/${entry} ${kernel}`;
    if (key === this.drawn || !link) {
      return;
    }
    this.drawn = key;
    this.body.replaceChildren(note(trans.__("Fetching the kernel…")));
    const answer = await link.ask({ ask: "kernel", number, entry, kernel });
    if (this.drawn === key) {
      this.drawn = answer.kernel ? key : "";
      this.body.replaceChildren(...(answer.kernel ? this.show(answer.kernel) : [note(answer.error)]));
    }
  }

  private show(kernel: KernelView): HTMLElement[] {
    const { trans } = this.frame;
    const lines = new Map<string, { where: KernelView["nodes"][number]["where"]; ops: string[] }>();
    for (const { where, name, type } of kernel.nodes) {
      const key = `${where.file}:${where.line}`;
      const held = lines.get(key) ?? { where, ops: [] };
      held.ops.push(`${name}  ${type}`);
      lines.set(key, held);
    }
    const listing = (title: string, text: string, open: boolean): HTMLElement =>
      h(
        "details",
        { open },
        h("summary", {}, title),
        h("pre", { class: "tc-listing", tabindex: 0, "aria-label": title }, text.slice(0, LONGEST)),
      );
    return [
      note(kernel.description),
      ...[...lines.values()].map(({ where, ops }) =>
        h("div", { class: "tc-line" }, lineButton(this.frame, where), h("pre", {}, ops.join("\n"))),
      ),
      listing(trans.__("LLVM IR"), kernel.ir, true),
      listing(trans.__("Assembly"), kernel.assembly, false),
    ];
  }
}
