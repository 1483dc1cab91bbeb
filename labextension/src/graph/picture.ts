// A graph as a picture to look around in.
//
// Enters: the data of a graph. Leaves: an element with the drawing: scroll or drag to move, Ctrl and the wheel or the
// buttons to zoom, arrow keys to walk along the edges. Only what can be seen is in the page, so that thousands of boxes
// move as smoothly as ten.

import type { TranslationBundle } from "@jupyterlab/translation";

import { h, s } from "../dom.ts";
import type { GraphView, NodeView } from "../generated/displays.ts";
import { firstFolds, kernelId, nodeId, scene } from "./scene.ts";
import type { Box, Scene } from "./scene.ts";
import type { Point } from "./layout.ts";

const MARGIN = 16;
const BARE = 0.35; // below this zoom boxes have no text

/** What the picture tells of itself. */
export interface PictureOptions {
  trans: TranslationBundle;
  /** A box was chosen: an operation, or a kernel by its name; neither where nothing is. */
  chosen(node: NodeView | null, kernel: string): void;
}

/** One picture. */
export class Picture {
  readonly node: HTMLElement;
  private readonly view: HTMLElement;
  private readonly svg: SVGSVGElement;
  private readonly said: HTMLElement;
  private readonly folds: Set<string>;
  private scene: Scene;
  private byId = new Map<string, Box>();
  private zoom = 1;
  private selected = "";
  private lit: ReadonlySet<string> = new Set();
  private waiting = 0;
  private painted = "";
  private readonly resized: ResizeObserver;

  constructor(
    readonly graph: GraphView,
    private readonly options: PictureOptions,
  ) {
    const { trans } = options;
    this.folds = firstFolds(graph);
    this.scene = scene(graph, this.folds);
    this.svg = s("svg", { class: "tc-svg", "aria-hidden": "true" });
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
      this.svg,
    );
    this.view.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    const button = (sign: string, label: string, click: () => void): HTMLElement =>
      h("button", { type: "button", class: "tc-tool", title: label, "aria-label": label, click }, sign);
    const tools = h(
      "div",
      { class: "tc-tools", role: "toolbar", "aria-label": trans.__("Graph") },
      button("−", trans.__("Smaller"), () => this.scale(0.8)),
      button("+", trans.__("Larger"), () => this.scale(1.25)),
      button("⤢", trans.__("Fit"), () => this.fit()),
      graph.kernels.length > 0 && button("▤", trans.__("Fold or unfold all kernels"), () => this.foldAll()),
    );
    this.node = h("div", { class: "tc-picture" }, this.view, tools, this.said);
    this.resized = new ResizeObserver(() => this.later());
    this.resized.observe(this.view);
    this.take();
    requestAnimationFrame(() => this.fit());
  }

  /** Lights the operations with these names up, and brings the first of them into view. */
  light(names: Iterable<string>): void {
    const kernelOf = new Map(this.graph.nodes.map((node) => [node.name, node.kernel]));
    const ids = [...names].map((name) =>
      this.byId.has(nodeId(name)) ? nodeId(name) : kernelId(kernelOf.get(name) ?? ""),
    );
    this.lit = new Set(ids);
    const first = this.byId.get(ids[0] ?? "");
    if (first) {
      this.into(first);
    }
    this.paint();
  }

  /** Ends the picture. */
  dispose(): void {
    this.resized.disconnect();
    cancelAnimationFrame(this.waiting);
  }

  private take(): void {
    this.byId = new Map(this.scene.boxes.map((box) => [box.id, box]));
    this.size();
  }

  private size(): void {
    const { width, height } = this.scene;
    this.svg.setAttribute("width", String(Math.ceil((width + 2 * MARGIN) * this.zoom)));
    this.svg.setAttribute("height", String(Math.ceil((height + 2 * MARGIN) * this.zoom)));
    this.paint();
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
    const { view, zoom, scene: all } = this;
    const bare = zoom < BARE;
    // In steps of half a view, so that a scroll mostly finds everything there.
    const [w, t] = [Math.max(200, view.clientWidth) / zoom, Math.max(200, view.clientHeight) / zoom];
    const left = Math.floor((view.scrollLeft / zoom / w) * 2 - 1) * (w / 2);
    const top = Math.floor((view.scrollTop / zoom / t) * 2 - 1) * (t / 2);
    const [right, bottom] = [left + 2.5 * w, top + 2.5 * t];
    const key = [left, top, right, bottom, zoom, this.selected, [...this.lit].join("|")].join();
    if (key === this.painted) {
      return;
    }
    this.painted = key;
    const near = this.selected === "" ? null : this.neighbours(this.selected);
    const groups: SVGElement[] = [];
    const lines: SVGElement[] = [];
    const boxes: SVGElement[] = [];
    for (const box of all.boxes) {
      if (box.x <= right && box.x + box.width >= left && box.y <= bottom && box.y + box.height >= top) {
        (box.folded === false ? groups : boxes).push(this.box(box, bare, near));
      }
    }
    for (const { from, to, points } of all.routes) {
      const [first, last] = [points[0]!, points[points.length - 1]!];
      const across = [Math.min(...points.map(([x]) => x)), Math.max(...points.map(([x]) => x))];
      if (first[1] <= bottom && last[1] >= top && across[0]! <= right && across[1]! >= left) {
        const hot = this.selected !== "" && (from === this.selected || to === this.selected);
        lines.push(s("path", { d: curve(points), class: hot ? "tc-edge tc-hot" : "tc-edge" }));
        lines.push(s("path", { d: `M${n(last[0])} ${n(last[1])}l-3 -6h6z`, class: "tc-arrow" }));
      }
    }
    const place = `scale(${zoom}) translate(${MARGIN} ${MARGIN})`;
    this.svg.replaceChildren(s("g", { transform: place }, ...groups, ...lines, ...boxes));
  }

  private box(box: Box, bare: boolean, near: Set<string> | null): SVGElement {
    const { id, sort, x, y, width, height, folded } = box;
    const classes = ["tc-box", `tc-sort-${/^[a-z]+$/.test(sort) ? sort : "opaque"}`];
    classes.push(...(folded === false ? ["tc-open"] : []), ...(id === this.selected ? ["tc-selected"] : []));
    classes.push(...(this.lit.has(id) ? ["tc-lit"] : []), ...(near !== null && !near.has(id) ? ["tc-far"] : []));
    const round = sort === "input" || sort === "output" ? Math.min(height / 2, 16) : 6;
    const middle = { x: width / 2, "text-anchor": "middle" };
    const sign = folded === null ? "" : folded ? "▸ " : "▾ ";
    const title =
      folded === false
        ? s("text", { class: "tc-title", x: 10, y: 17 }, sign + box.title)
        : s("text", { class: "tc-title", ...middle, y: 18 }, sign + box.title);
    const detail = box.detail && folded !== false && s("text", { class: "tc-detail", ...middle, y: 33 }, box.detail);
    return s(
      "g",
      { class: classes.join(" "), transform: `translate(${n(x)} ${n(y)})`, "data-id": id },
      s("rect", { class: "tc-ground", width: n(width), height: n(height), rx: round }),
      s("rect", { class: "tc-face", width: n(width), height: n(height), rx: round }),
      !bare && title,
      !bare && detail,
    );
  }

  private neighbours(id: string): Set<string> {
    const near = new Set([id, ...(this.byId.get(id)?.inputs ?? [])]);
    for (const box of this.scene.boxes) {
      if (box.inputs.includes(id)) {
        near.add(box.id);
      }
    }
    // What a chosen box stands in, or holds, is near too.
    const own = this.byId.get(id);
    for (const box of this.scene.boxes) {
      if (own && (inside(box, own) || inside(own, box))) {
        near.add(box.id);
      }
    }
    return near;
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
    this.again(id);
  }

  private foldAll(): void {
    const ids = this.graph.kernels.map(kernelId);
    const any = ids.some((id) => this.folds.has(id));
    ids.forEach((id) => (any ? this.folds.delete(id) : this.folds.add(id)));
    this.again("");
    this.fit();
  }

  private again(id: string): void {
    this.painted = "";
    this.scene = scene(this.graph, this.folds);
    this.take();
    const box = this.byId.get(id);
    if (box) {
      this.choose(id);
      this.into(box);
    }
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
      this.fit();
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
    const zoom = Math.min(3, Math.max(0.05, this.zoom * factor));
    const ratio = zoom / this.zoom;
    const [left, top] = [this.view.scrollLeft, this.view.scrollTop];
    this.zoom = zoom;
    this.size();
    this.view.scrollLeft = (left + at[0]) * ratio - at[0];
    this.view.scrollTop = (top + at[1]) * ratio - at[1];
    this.later();
  }

  /** As large as there is room for, and not so small that nothing can be read. */
  private fit(): void {
    const { width, height } = this.scene;
    const room = this.view.clientWidth / (width + 2 * MARGIN);
    const tall = this.view.clientHeight / (height + 2 * MARGIN);
    this.zoom = Math.min(1, Math.max(room, 0.5), Math.max(0.5, Math.min(room, tall)));
    this.size();
    this.view.scrollLeft = ((width + 2 * MARGIN) * this.zoom - this.view.clientWidth) / 2;
    this.view.scrollTop = 0;
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

function inside(inner: Box, outer: Box): boolean {
  return (
    inner.x >= outer.x &&
    inner.y >= outer.y &&
    inner.x + inner.width <= outer.x + outer.width &&
    inner.y + inner.height <= outer.y + outer.height
  );
}

/** A path through the points that leaves and arrives upright. */
function curve(points: Point[]): string {
  const [first, ...rest] = points;
  let [x0, y0] = first!;
  let path = `M${n(x0)} ${n(y0)}`;
  for (const [x, y] of rest) {
    const bend = (y - y0) * 0.5;
    path +=
      Math.abs(x - x0) < 0.5 ? `L${n(x)} ${n(y)}` : `C${n(x0)} ${n(y0 + bend)} ${n(x)} ${n(y - bend)} ${n(x)} ${n(y)}`;
    [x0, y0] = [x, y];
  }
  return path;
}

function n(value: number): string {
  return String(Math.round(value * 10) / 10);
}
