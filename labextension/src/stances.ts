// The stance: a chooser in the notebook's toolbar, another in the status bar and one in the panel.
//
// Input: the stance of the kernel in front. Output: clicks, as questions to the kernel. All choosers follow the kernel,
// so that they agree with each other and with code that sets the stance.

import type { TranslationBundle } from "@jupyterlab/translation";
import { Widget } from "@lumino/widgets";

import { h } from "./dom.ts";
import type { Link } from "./link.ts";
import type { Links } from "./links.ts";

/** A chooser of the stance of the kernel that `which` names; hidden where that has no tcompile. */
export class StanceChooser extends Widget {
  private readonly select: HTMLSelectElement;

  constructor(
    private readonly links: Links,
    private readonly which: () => Link | null,
    trans: TranslationBundle,
  ) {
    const label = trans.__("Stance of tcompile: what compiled functions do");
    const select = h("select", { "aria-label": label, class: "tc-stance", change: () => this.chosen() });
    super({
      node: h(
        "label",
        { class: "tc-stance-box", title: label },
        h("span", { class: "tc-dot" }),
        h("span", { class: "tc-dim" }, "tcompile"),
        select,
      ),
    });
    this.select = select;
    links.news.connect(this.follow, this);
    links.changed.connect(this.follow, this);
    this.follow();
  }

  override dispose(): void {
    this.links.news.disconnect(this.follow, this);
    this.links.changed.disconnect(this.follow, this);
    super.dispose();
  }

  private follow(): void {
    const link = this.which();
    const { stance, stances } = link?.model ?? { stance: "", stances: {} as Record<string, string> };
    const known = link?.connected ? stance : "";
    const names = Object.keys(stances);
    if (names.join() !== [...this.select.options].map((option) => option.value).join()) {
      this.select.replaceChildren(...names.map((name) => h("option", { value: name, title: stances[name] }, name)));
    }
    this.select.value = stance;
    this.node.dataset.stance = known; // nothing is shown where it is empty: the status bar would undo `hide`
  }

  private chosen(): void {
    const link = this.which();
    const stance = this.select.value;
    if (link) {
      void link.ask({ ask: "stance", stance }).then(() => this.follow());
    }
  }
}
