// One graph, with the user's line for each operation.
//
// Input: the entry that is chosen; its graph, which is asked for. Output: the picture and what it says of the chosen
// operation. The line of the cursor highlights its operations.

import { h, keep } from "../dom.ts";
import type { GraphView, NodeView } from "../generated/displays.ts";
import { checkGraph } from "../graph/check.ts";
import type { Picture } from "../graph/picture.ts";
import { EntryChooser, lineButton, note } from "./section.ts";
import type { Choice, Frame, Section } from "./section.ts";

/** The section. */
export class Graphs implements Section {
  readonly node = h("div", { class: "tc-section tc-fill" });
  private picture: Picture | null = null;
  private drawn = ""; // which graph the picture is of
  private readonly head = h("div", {});
  private readonly body = h("div", { class: "tc-fill" });
  private readonly about = h("div", { class: "tc-about" });

  private readonly chooser: EntryChooser;
  private readonly empty: HTMLElement;

  constructor(private readonly frame: Frame) {
    this.chooser = new EntryChooser(frame, () => void this.fetch());
    this.empty = note(frame.trans.__("No graph has been captured yet."));
    this.node.append(this.head, this.body, this.about);
  }

  draw(): void {
    keep(this.head, [this.chooser.draw() ?? this.empty]);
    void this.fetch();
  }

  cursor(file: string, line: number): void {
    const { picture } = this;
    if (picture !== null) {
      const names = picture.graph.nodes.filter((node) => covers(node, file, line)).map((node) => node.name);
      picture.light(names);
    }
  }

  private async fetch(): Promise<void> {
    const { link, choice } = this.frame;
    const key = link && choice ? `${link.kernel.id} ${choice.number}/${choice.entry}` : "";
    if (key === this.drawn) {
      return;
    }
    this.drawn = key;
    this.picture?.dispose();
    this.picture = null;
    this.about.replaceChildren();
    if (!link || !choice) {
      this.body.replaceChildren();
      return;
    }
    this.body.replaceChildren(note(this.frame.trans.__("Fetching the graph…")));
    const [answer, { Picture }] = await Promise.all([
      link.ask({ ask: "graph", number: choice.number, entry: choice.entry }),
      import("../graph/picture.ts"),
    ]);
    if (this.drawn !== key) {
      return; // another one was chosen in the meantime
    }
    const { trans } = this.frame;
    const graph = answer.graph ? checkGraph(answer.graph, trans) : answer.error || trans.__("This entry has no graph.");
    if (typeof graph === "string") {
      this.drawn = "";
      this.body.replaceChildren(note(graph));
      return;
    }
    this.show(graph, choice, Picture);
  }

  private show(graph: GraphView, choice: Choice, Made: typeof Picture): void {
    const { trans } = this.frame;
    const chosen = (node: NodeView | null, kernel: string): void => this.tell(choice, node, kernel);
    this.picture = new Made(graph, { trans, chosen });
    const hidden = graph.ops > graph.nodes.length && !graph.transformed;
    const more = hidden ? note(trans.__("The first %1 of %2 operations.", graph.nodes.length, graph.ops)) : null;
    this.body.replaceChildren(...(more ? [more] : []), this.picture.node);
    this.tell(choice, null, "");
  }

  private tell(choice: Choice, node: NodeView | null, kernel: string): void {
    const { frame } = this;
    const { trans } = frame;
    const name = node?.kernel || kernel;
    const go = (): void => frame.go("kernels", { ...choice, kernel: name });
    const shown = name && h("button", { type: "button", class: "tc-link", click: go }, h("code", {}, name));
    if (node === null && !kernel) {
      this.about.replaceChildren(note(trans.__("Choose an operation to see its line and its kernel.")));
      return;
    }
    this.about.replaceChildren(
      ...(node === null
        ? []
        : [h("div", {}, h("b", {}, node.name), " ", h("code", {}, node.type)), h("code", {}, node.call)]),
      lineButton(frame, node?.where ?? NOWHERE) ?? "",
      h("div", {}, name ? trans.__("kernel ") : "", shown || ""),
    );
  }
}

const NOWHERE = { file: "", line: 0, column: null, end_column: null, function: "", text: "", end_line: 0 };

function covers({ where, inside }: NodeView, file: string, line: number): boolean {
  const own = where.file === file && where.line <= line && line <= Math.max(where.line, where.end_line);
  return own || inside.some((inner) => covers(inner, file, line));
}
