// One kernel: the user's lines, its operations, its intermediate code and its machine code.
//
// Input: the entry that is chosen, and which of its kernels; the listings, which are asked for. Output: text.

import { h, keep } from "../dom.ts";
import type { KernelView } from "../generated/displays.ts";
import { Chooser, choices, EntryChooser, guarded, lineButton, note } from "./section.ts";
import type { Frame, Section } from "./section.ts";

/** Characters of a listing that are shown. */
const LONGEST = 200_000;

/** The section. */
export class Kernels implements Section {
  readonly node = h("div", { class: "tc-section" });
  private readonly head = h("div", { class: "tc-row" });
  private readonly body = h("div", {});
  private drawn = "";

  private readonly chooser: EntryChooser;
  private readonly which: Chooser;

  constructor(private readonly frame: Frame) {
    this.chooser = new EntryChooser(frame, () => this.draw());
    this.which = new Chooser(frame.trans.__("Kernel"), (kernel) => {
      frame.choice = frame.choice && { ...frame.choice, kernel };
      this.draw();
    });
    this.node.append(this.head, this.body);
  }

  draw(): void {
    const { frame } = this;
    const select = this.chooser.draw();
    const { choice } = frame;
    const entry = choices(frame).find(
      (one) => one.choice.number === choice?.number && one.choice.entry === choice.entry,
    );
    const kernels = entry?.entry.kernels ?? [];
    if (!select || !choice || !kernels.length) {
      this.drawn = "";
      keep(this.head, select ? [select] : []);
      this.body.replaceChildren(note(frame.trans.__("No kernel has been compiled here.")));
      return;
    }
    const kernel = kernels.includes(choice.kernel ?? "") ? choice.kernel! : kernels[0]!;
    this.which.offer(
      kernels.map((name) => [name, name] as const),
      kernel,
    );
    keep(this.head, [select, this.which.node]);
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
      const { kernel: shown } = answer;
      this.body.replaceChildren(
        guarded(this.frame, () => h("div", {}, ...(shown ? this.show(shown) : [note(answer.error)]))),
      );
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
      listing(kernel.language, kernel.ir, true),
      listing(trans.__("Assembly"), kernel.assembly, false),
    ];
  }
}
