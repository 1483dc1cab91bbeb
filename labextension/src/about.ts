// The page about graph breaks, in a tab of JupyterLab.
//
// Input: the id of a reason.
// Output: the page `graph_breaks.md`, which comes with the extension, scrolled to the reason.

import { MainAreaWidget } from "@jupyterlab/apputils";
import { PageConfig, URLExt } from "@jupyterlab/coreutils";
import type { JupyterFrontEnd } from "@jupyterlab/application";
import { MimeModel } from "@jupyterlab/rendermime";
import type { IRenderMimeRegistry } from "@jupyterlab/rendermime";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Widget } from "@lumino/widgets";

import { h } from "./dom.ts";

const MARKDOWN = "text/markdown";

/** Opens the page about graph breaks. */
export class About {
  private shown: MainAreaWidget | null = null;

  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly rendermime: IRenderMimeRegistry,
    private readonly trans: TranslationBundle,
  ) {}

  /** Shows the page, at a reason. */
  async open(reason: string): Promise<void> {
    const { shell } = this.app;
    if (this.shown === null || this.shown.isDisposed) {
      this.shown = await this.make();
    }
    if (!this.shown.isAttached) {
      shell.add(this.shown, "main", { mode: "split-right" });
    }
    shell.activateById(this.shown.id);
    const heads = [...this.shown.node.querySelectorAll<HTMLElement>("h3")];
    const head = heads.find((one) => (one.textContent ?? "").startsWith(reason));
    // Once when the tab is open, and once when its code is highlighted and has its height.
    for (const wait of [30, 400]) {
      setTimeout(() => head?.scrollIntoView({ block: "start" }), wait);
    }
  }

  private async make(): Promise<MainAreaWidget> {
    const content = new Widget({ node: h("div", { class: "tc-page jp-RenderedHTMLCommon", tabindex: 0 }) });
    const url = URLExt.join(PageConfig.getOption("fullLabextensionsUrl"), "tcompile", "static", "graph_breaks.md");
    try {
      const reply = await fetch(url);
      const text = reply.ok ? await reply.text() : this.trans.__("The page is not there: %1", reply.statusText);
      const renderer = this.rendermime.createRenderer(MARKDOWN);
      await renderer.renderModel(new MimeModel({ data: { [MARKDOWN]: text }, trusted: false }));
      content.node.append(renderer.node);
    } catch (error) {
      content.node.textContent = String(error);
    }
    const shown = new MainAreaWidget({ content });
    shown.id = "tcompile-graph-breaks";
    shown.title.label = this.trans.__("Graph breaks");
    shown.title.closable = true;
    return shown;
  }
}
