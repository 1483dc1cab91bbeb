// A graph as a picture with scrolling and zoom.
//
// Input: the data of a graph. Output: an element with the drawing: scroll or drag to move, Ctrl and the wheel or the
// buttons to zoom, arrow keys to walk along the edges. Only what can be seen is in the page, so that thousands of boxes
// move as smoothly as ten.

import type { TranslationBundle } from "@jupyterlab/translation";

import { h, s } from "../dom.ts";
import type { GraphView, NodeView } from "../generated/displays.ts";
import type { Point } from "./layout.ts";
import { Painter } from "./paint.ts";
import { firstFolds, kernelId, nodeId, partOf, scene } from "./scene.ts";
import type { Box, Scene } from "./scene.ts";
import { sliced } from "./sliced.ts";

const MARGIN = 16;
const LEAST = 0.0005; // zoom: some thousand operations are in view
const BARE = 0.45; // below this zoom boxes have no text
const REST = 120; // milliseconds after which a zoom is over

/** The events of the picture. */
export interface PictureOptions {
  trans: TranslationBundle;
  /** A box was chosen: an operation, or a kernel by its name; neither where nothing is. */
  chosen(node: NodeView | null, kernel: string): void;
}

/** One picture. */
export class Picture {
  readonly node: HTMLElement;
  private readonly view: HTMLElement;
  private readonly room: HTMLElement; // as large as the whole picture, for the scroll bars
  private readonly svg: SVGSVGElement;
  private readonly said: HTMLElement;
  private readonly folds: Set<string>;
  private shown: GraphView; // the graph, or one part of it
  private scene: Scene = { boxes: [], routes: [], width: 0, height: 0 };
  private painter = new Painter(this.scene);
  private byId = new Map<string, Box>();
  private zoom = 1;
  private sharp = 1; // the zoom at which it was drawn; in between, the drawing is stretched
  private resting = 0;
  private selected = "";
  private lines: string[] = []; // the operations of the line that the cursor is in
  private lit: ReadonlySet<string> = new Set();
  private waiting = 0;
  private painted = "";
  private giveUp = (): void => {};
  private readonly resized: ResizeObserver;

  constructor(
    readonly graph: GraphView,
    private readonly options: PictureOptions,
  ) {
    const { trans } = options;
    this.shown = graph;
    this.folds = firstFolds(graph);
    this.svg = s("svg", { class: "tc-svg", "aria-hidden": "true" });
    this.room = h("div", { class: "tc-room" }, this.svg);
    this.said = h("div", { class: "tc-sr", "aria-live": "polite" });
    this.view = h(
      "div",
      {
        class: "tc-view",
        tabindex: 0,
        role: "application",
        "data-lm-suppress-shortcuts": "true", // or JupyterLab would take the arrow keys in a notebook's output
        "aria-label": trans.__(
          "Graph %1, %2 operations. Arrow keys follow the edges, Enter folds, plus and minus zoom.",
          graph.name,
          graph.ops,
        ),
        scroll: () => this.later(),
        click: (event) => this.clicked(event),
        dblclick: (event) => this.toggle(boxOf(event)),
        keydown: (event) => this.key(event as KeyboardEvent),
        pointerdown: (event) => this.drag(event as PointerEvent),
      },
      this.room,
    );
    this.view.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    const button = (sign: string, label: string, click: () => void): HTMLElement =>
      h("button", { type: "button", class: "tc-tool", title: label, "aria-label": label, click }, sign);
    const tools = h(
      "div",
      { class: "tc-tools", role: "toolbar", "aria-label": trans.__("Graph") },
      button("−", trans.__("Smaller"), () => this.scale(0.8)),
      button("+", trans.__("Larger"), () => this.scale(1.25)),
      button("⤢", trans.__("Fit"), () => this.fit(true)),
      graph.kernels.length > 0 && button("▤", trans.__("Fold or unfold all kernels"), () => this.foldAll()),
    );
    const parts: [string, () => GraphView][] = [
      [trans.__("Whole"), () => graph],
      [trans.__("Forward"), () => partOf(graph, false)],
      [trans.__("Backward"), () => partOf(graph, true)],
    ];
    const tabs = parts.map(([name], n) =>
      h("button", { type: "button", class: "tc-part", "aria-pressed": String(n === 0), click: () => turn(n) }, name),
    );
    const turn = (number: number): void => {
      tabs.forEach((tab, n) => tab.setAttribute("aria-pressed", String(n === number)));
      this.shown = parts[number]?.[1]() ?? graph;
      this.choose("");
      this.draw(() => this.fit());
    };
    const isDerivative = graph.nodes.some((node) => node.backward) && graph.nodes.some((node) => !node.backward);
    const named = { class: "tc-parts", role: "toolbar", "aria-label": trans.__("Part of the graph") };
    const busy = h("div", { class: "tc-busy tc-dim" }, trans.__("Laying %1 operations out…", graph.ops));
    this.node = h(
      "div",
      { class: "tc-picture" },
      isDerivative && h("div", named, ...tabs),
      this.view,
      busy,
      tools,
      this.said,
    );
    this.resized = new ResizeObserver(() => this.later());
    this.resized.observe(this.view);
    this.draw(() => requestAnimationFrame(() => this.fit()));
  }

  /** Highlights the operations with these names, and scrolls to the first of them. */
  light(names: Iterable<string>): void {
    this.lines = [...names];
    this.find();
    const [first] = [...this.lit].flatMap((id) => this.byId.get(id) ?? []);
    if (first) {
      this.into(first);
    }
    this.paint();
  }

  /** Ends the picture. */
  dispose(): void {
    this.giveUp();
    this.resized.disconnect();
    cancelAnimationFrame(this.waiting);
    clearTimeout(this.resting);
  }

  /** Computes the layout in slices; the old drawing stays until then. */
  private draw(then: () => void): void {
    this.giveUp();
    this.node.setAttribute("aria-busy", "true");
    this.giveUp = sliced(scene(this.shown, this.folds), (made) => {
      this.node.removeAttribute("aria-busy");
      this.scene = made;
      this.byId = new Map(made.boxes.map((box) => [box.id, box]));
      this.painter = new Painter(made);
      this.svg.replaceChildren(this.painter.node);
      this.find();
      this.size();
      then();
    });
  }

  /** Finds the boxes of the highlighted operations: their own, or those of their kernels. */
  private find(): void {
    const kernelOf = new Map(this.graph.nodes.map((node) => [node.name, node.kernel]));
    const ids = this.lines.map((name) =>
      this.byId.has(nodeId(name)) ? nodeId(name) : kernelId(kernelOf.get(name) ?? ""),
    );
    this.lit = new Set(ids);
  }

  /** Makes room for the picture at this zoom, and draws it sharp. */
  private size(): void {
    const { width, height } = this.scene;
    this.grow();
    clearTimeout(this.resting);
    this.resting = 0;
    this.sharp = this.zoom;
    this.painted = "";
    this.svg.style.transform = "";
    this.svg.setAttribute("width", String(Math.ceil((width + 2 * MARGIN) * this.zoom)));
    this.svg.setAttribute("height", String(Math.ceil((height + 2 * MARGIN) * this.zoom)));
    this.painter.node.setAttribute("transform", `scale(${this.zoom}) translate(${MARGIN} ${MARGIN})`);
    this.paint();
  }

  private grow(): void {
    const { width, height } = this.scene;
    this.room.style.width = `${Math.ceil((width + 2 * MARGIN) * this.zoom)}px`;
    this.room.style.height = `${Math.ceil((height + 2 * MARGIN) * this.zoom)}px`;
  }

  /** Shows the drawing larger or smaller at once; it is drawn sharp when the zoom is over, or has come too far. */
  private stretch(): void {
    const ratio = this.zoom / this.sharp;
    if (ratio < 0.6 || ratio > 2.5) {
      this.size();
      return;
    }
    this.grow();
    this.svg.style.transform = `scale(${ratio})`;
    clearTimeout(this.resting);
    this.resting = window.setTimeout(() => this.size(), REST);
  }

  private later(): void {
    if (!this.waiting) {
      this.waiting = requestAnimationFrame(() => {
        this.waiting = 0;
        this.paint();
      });
    }
  }

  /** Puts what can be seen, and a little around it, into the page. */
  private paint(): void {
    const { view, zoom, selected, lit } = this;
    if (this.resting) {
      return;
    }
    // In steps of a quarter of the view, so that a scroll mostly finds everything there.
    const [w, t] = [Math.max(200, view.clientWidth) / zoom, Math.max(200, view.clientHeight) / zoom];
    const left = Math.floor((view.scrollLeft / zoom / w) * 4 - 1) * (w / 4);
    const top = Math.floor((view.scrollTop / zoom / t) * 4 - 1) * (t / 4);
    const key = [left, top, w, t, selected, [...lit].join("|")].join();
    if (key !== this.painted) {
      this.painted = key;
      const seen = { left, top, right: left + 1.75 * w, bottom: top + 1.75 * t };
      this.painter.paint(seen, { selected, lit, bare: zoom < BARE });
    }
  }

  private choose(id: string): void {
    const box = this.byId.get(id);
    this.selected = box ? id : "";
    this.said.textContent = box ? `${box.title} ${box.detail}` : "";
    this.options.chosen(box?.node ?? null, box?.kernel ?? "");
    this.paint();
  }

  private clicked(event: Event): void {
    const id = boxOf(event);
    const box = this.byId.get(id);
    if (id !== "" && id === this.selected && box?.folded) {
      this.toggle(id);
    } else {
      this.choose(id);
    }
  }

  private toggle(id: string): void {
    const box = this.byId.get(id);
    if (box === undefined || box.folded === null) {
      return;
    }
    box.folded ? this.folds.delete(id) : this.folds.add(id);
    this.draw(() => {
      const drawn = this.byId.get(id);
      if (drawn) {
        this.choose(id);
        this.into(drawn);
      }
    });
  }

  private foldAll(): void {
    const ids = this.shown.kernels.map(kernelId);
    const any = ids.some((id) => this.folds.has(id));
    ids.forEach((id) => (any ? this.folds.delete(id) : this.folds.add(id)));
    this.draw(() => this.fit());
  }

  private key(event: KeyboardEvent): void {
    const own = this.byId.get(this.selected);
    const boxes = this.scene.boxes;
    const readers = boxes.filter((box) => box.inputs.includes(this.selected));
    const beside = (step: number): Box | undefined => {
      const row = boxes.filter((box) => own && box.y === own.y).sort((a, b) => a.x - b.x);
      return row[row.findIndex((box) => box.id === this.selected) + step];
    };
    const steps: Record<string, () => Box | undefined> = {
      ArrowDown: () => (own ? readers[0] : boxes[0]),
      ArrowUp: () => (own ? this.byId.get(own.inputs[0] ?? "") : boxes[boxes.length - 1]),
      ArrowLeft: () => beside(-1),
      ArrowRight: () => beside(1),
      Home: () => boxes[0],
      End: () => boxes[boxes.length - 1],
    };
    const step = steps[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (step) {
      const next = step();
      if (next) {
        this.choose(next.id);
        this.into(next);
      }
    } else if (event.key === "Enter" || event.key === " ") {
      this.toggle(this.selected);
    } else if (event.key === "Escape" && this.selected !== "") {
      this.choose("");
    } else if (event.key === "+" || event.key === "=") {
      this.scale(1.25);
    } else if (event.key === "-") {
      this.scale(0.8);
    } else if (event.key === "0") {
      this.fit(true);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private wheel(event: WheelEvent): void {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const { left, top } = this.view.getBoundingClientRect();
      this.scale(Math.exp(-event.deltaY / 300), [event.clientX - left, event.clientY - top]);
    }
  }

  private drag(start: PointerEvent): void {
    const { view } = this;
    const [left, top] = [view.scrollLeft, view.scrollTop];
    if (start.button !== 0 || boxOf(start) !== "") {
      return;
    }
    const move = (event: PointerEvent): void => {
      view.scrollLeft = left + start.clientX - event.clientX;
      view.scrollTop = top + start.clientY - event.clientY;
    };
    const end = (): void => {
      view.classList.remove("tc-dragged");
      view.removeEventListener("pointermove", move);
    };
    view.classList.add("tc-dragged");
    view.setPointerCapture(start.pointerId);
    view.addEventListener("pointermove", move);
    view.addEventListener("pointerup", end, { once: true });
    view.addEventListener("pointercancel", end, { once: true });
  }

  /** Zooms by a factor; the point `at` of the view stays where it is. */
  private scale(factor: number, at: Point = [this.view.clientWidth / 2, this.view.clientHeight / 2]): void {
    const zoom = Math.min(3, Math.max(LEAST, this.zoom * factor));
    const ratio = zoom / this.zoom;
    const [left, top] = [this.view.scrollLeft, this.view.scrollTop];
    this.zoom = zoom;
    this.stretch();
    this.view.scrollLeft = (left + at[0]) * ratio - at[0];
    this.view.scrollTop = (top + at[1]) * ratio - at[1];
    this.later();
  }

  /** Zooms until all of it is in view; else as far as text stays readable. */
  private fit(whole = false): void {
    const { width, height } = this.scene;
    const room = this.view.clientWidth / (width + 2 * MARGIN);
    const tall = this.view.clientHeight / (height + 2 * MARGIN);
    const [wide, high] = whole ? [LEAST, LEAST] : [0.5, 0.75];
    this.zoom = Math.min(1, Math.max(room, wide), Math.max(tall, high));
    this.size();
    this.view.scrollLeft = ((width + 2 * MARGIN) * this.zoom - this.view.clientWidth) / 2;
    this.view.scrollTop = 0;
    const [first, ...others] = this.scene.boxes;
    if (first) {
      this.into(others.reduce((top, box) => (box.y < top.y ? box : top), first)); // or a wide picture may begin empty
    }
    this.later();
  }

  private into(box: Box): void {
    const { view, zoom } = this;
    const [x, y] = [(box.x + MARGIN) * zoom, (box.y + MARGIN) * zoom];
    if (x < view.scrollLeft || x + box.width * zoom > view.scrollLeft + view.clientWidth) {
      view.scrollLeft = x + (box.width * zoom - view.clientWidth) / 2;
    }
    if (y < view.scrollTop || y + box.height * zoom > view.scrollTop + view.clientHeight) {
      view.scrollTop = y - view.clientHeight / 3;
    }
  }
}

function boxOf(event: Event): string {
  const part = event.target instanceof Element ? event.target.closest<SVGElement>("[data-id]") : null;
  return part?.dataset.id ?? "";
}
