// The renderer of saved graphs: a notebook shows them with neither a kernel nor tcompile.
//
// Input: JSON of the type `application/vnd.tcompile.graph+json`, from a notebook that may be anybody's. Output: the
// picture, with what it says of the chosen operation. Nothing of the data is run or read as HTML; what is no graph gets
// a plain line.

import type { IRenderMime } from "@jupyterlab/rendermime-interfaces";
import { nullTranslator } from "@jupyterlab/translation";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Widget } from "@lumino/widgets";

import "../style/index.css";
import { h } from "./dom.ts";
import { VERSION } from "./generated/displays.ts";
import { checkGraph } from "./graph/check.ts";
import type { Picture } from "./graph/picture.ts";

const MIME = "application/vnd.tcompile.graph+json";

class Rendered extends Widget implements IRenderMime.IRenderer {
  private readonly trans: TranslationBundle;
  private picture: Picture | null = null;

  constructor(translator: IRenderMime.IRendererOptions["translator"]) {
    super();
    this.trans = (translator ?? nullTranslator).load("tcompile");
    this.addClass("tc-rendered");
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const { trans } = this;
    const data: unknown = model.data[MIME];
    const graph = checkGraph(data, trans);
    this.picture?.dispose();
    if (typeof graph === "string") {
      this.node.replaceChildren(h("div", { class: "tc-note tc-dim" }, graph));
      return;
    }
    const { Picture } = await import("./graph/picture.ts");
    const about = h("div", { class: "tc-about" });
    this.picture = new Picture(graph, {
      trans,
      chosen: (node, kernel) => {
        const where = node?.where.line ? trans.__("line %1: ", node.where.line) : "";
        about.replaceChildren(
          ...(node ? [h("b", {}, node.name), " ", h("code", {}, node.type), h("br"), h("code", {}, node.call)] : []),
          ...(where ? [h("div", {}, where, h("code", {}, node?.where.text.trim()))] : []),
          ...(node?.kernel || kernel ? [h("div", {}, trans.__("kernel "), h("code", {}, node?.kernel || kernel))] : []),
        );
      },
    });
    const version = (data as { version?: unknown }).version;
    const other =
      version !== VERSION && trans.__("The graph was saved by another version: not all of it may be shown.");
    this.node.replaceChildren(
      h(
        "div",
        { class: "tc-caption" },
        h("b", {}, graph.name),
        " ",
        h("span", { class: "tc-dim" }, trans._n("%1 operation", "%1 operations", graph.ops)),
      ),
      other ? h("div", { class: "tc-note tc-dim" }, other) : "",
      this.picture.node,
      about,
      h("details", {}, h("summary", {}, trans.__("as text")), h("pre", {}, graph.listing)),
    );
  }

  override dispose(): void {
    this.picture?.dispose();
    super.dispose();
  }
}

const extension: IRenderMime.IExtension = {
  id: "tcompile:graphs",
  description: "Shows graphs of tcompile that a notebook has saved.",
  rendererFactory: {
    safe: true,
    mimeTypes: [MIME],
    defaultRank: 40, // before HTML, which has the same graph as a still picture
    createRenderer: (options) => new Rendered(options.translator),
  },
  dataType: "json",
};

export default extension;
