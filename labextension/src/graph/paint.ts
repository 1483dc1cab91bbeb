// The drawing of a scene: SVG elements for what lies in a window of it.
//
// Input: a scene, a window of it, the selected and the highlighted boxes. Output: a group of elements. What stays in the
// window is not touched, so scrolling costs only what comes into view. At small zoom, where no text is readable, a box is
// one rectangle, and all edges are one path.

import { keep, s } from "../dom.ts";
import type { Box, Scene } from "./scene.ts";
import type { Point } from "./layout.ts";

/** A part of a scene, in its coordinates. */
export interface Window {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** The selected and highlighted boxes, and whether text is hidden at this zoom. */
export interface Look {
  selected: string;
  lit: ReadonlySet<string>;
  bare: boolean;
}

interface Drawn {
  element: SVGElement;
  classes: string;
}

/** An edge; what is needed to draw it is made when it comes into view. */
interface Curve {
  points: Point[];
  path: string;
  arrow: string;
  window: Window;
  line: Drawn | null;
  head: Drawn | null;
}

/** The drawing of one scene. */
export class Painter {
  readonly node: SVGElement;
  private readonly groups = s("g");
  private readonly lines = s("g");
  private readonly boxes = s("g");
  private readonly drawn = { full: new Map<Box, Drawn>(), bare: new Map<Box, Drawn>() };
  private readonly curves: Curve[];
  private near: { of: string; ids: Set<string> } = { of: "", ids: new Set() };

  constructor(private readonly scene: Scene) {
    this.node = s("g", {}, this.groups, this.lines, this.boxes);
    this.curves = scene.routes.map(({ points }) => {
      const [x, y] = points[points.length - 1]!;
      const across = points.map(([x]) => x);
      const window = { left: Math.min(...across), right: Math.max(...across), top: points[0]![1], bottom: y };
      return { points, path: "", arrow: `M${n(x)} ${n(y)}l-3 -6h6z`, window, line: null, head: null };
    });
  }

  /** Draws what lies in a window. */
  paint(window: Window, look: Look): void {
    const [groups, boxes]: [SVGElement[], SVGElement[]] = [[], []];
    const near = look.selected === "" ? null : this.neighbours(look.selected);
    for (const box of this.scene.boxes) {
      const { x, y } = box;
      if (meets({ left: x, top: y, right: x + box.width, bottom: y + box.height }, window)) {
        (box.folded === false ? groups : boxes).push(this.box(box, look, near));
      }
    }
    keep(this.groups, groups);
    keep(this.lines, this.edges(window, look));
    keep(this.boxes, boxes);
  }

  private edges(window: Window, { selected, bare }: Look): SVGElement[] {
    const seen = this.scene.routes
      .map(({ from, to }, n) => ({
        curve: this.curves[n]!,
        hot: selected !== "" && (from === selected || to === selected),
      }))
      .filter(({ curve }) => meets(curve.window, window));
    if (bare) {
      const path = (hot: boolean): string => seen.map((one) => (one.hot === hot ? pathOf(one.curve) : "")).join("");
      return [false, true].map((hot) => s("path", { d: path(hot), class: hot ? "tc-edge tc-hot" : "tc-edge" }));
    }
    return seen.flatMap(({ curve, hot }) => {
      curve.line ??= { element: s("path", { d: pathOf(curve) }), classes: "" };
      curve.head ??= { element: s("path", { d: curve.arrow, class: "tc-arrow" }), classes: "" };
      return [styled(curve.line, hot ? "tc-edge tc-hot" : "tc-edge"), curve.head.element];
    });
  }

  private box(box: Box, { selected, lit, bare }: Look, near: Set<string> | null): SVGElement {
    const { id, sort, folded } = box;
    const held = this.drawn[bare ? "bare" : "full"];
    let drawn = held.get(box);
    if (drawn === undefined) {
      drawn = { element: bare ? outline(box) : whole(box), classes: "" };
      held.set(box, drawn);
    }
    const classes = ["tc-box", `tc-sort-${/^[a-z]+$/.test(sort) ? sort : "opaque"}`];
    classes.push(...(folded === false ? ["tc-open"] : []), ...(id === selected ? ["tc-selected"] : []));
    classes.push(...(lit.has(id) ? ["tc-lit"] : []), ...(near !== null && !near.has(id) ? ["tc-far"] : []));
    return styled(drawn, classes.join(" "));
  }

  /** Returns the users of a box, its operands, and its enclosing and inner boxes. */
  private neighbours(id: string): Set<string> {
    if (this.near.of !== id) {
      const own = this.scene.boxes.find((box) => box.id === id);
      const ids = new Set([id, ...(own?.inputs ?? [])]);
      for (const box of this.scene.boxes) {
        if (box.inputs.includes(id) || (own && (inside(box, own) || inside(own, box)))) {
          ids.add(box.id);
        }
      }
      this.near = { of: id, ids };
    }
    return this.near.ids;
  }
}

function styled(drawn: Drawn, classes: string): SVGElement {
  if (drawn.classes !== classes) {
    drawn.element.setAttribute("class", classes);
    drawn.classes = classes;
  }
  return drawn.element;
}

/** A box with its text. */
function whole(box: Box): SVGElement {
  const { width, folded } = box;
  const middle = { x: width / 2, "text-anchor": "middle" };
  const sign = folded === null ? "" : folded ? "▸ " : "▾ ";
  const place = folded === false ? { x: 10, y: 17 } : { ...middle, y: 18 };
  const title = s("text", { class: "tc-title", ...place }, sign + box.title);
  const detail = box.detail && folded !== false && s("text", { class: "tc-detail", ...middle, y: 33 }, box.detail);
  return s("g", at(box), face(box, "tc-ground"), face(box, "tc-face"), title, detail);
}

/** A box without text. */
function outline(box: Box): SVGElement {
  return s("g", at(box), face(box, "tc-face tc-bare"));
}

function at({ x, y, id }: Box): { transform: string; "data-id": string } {
  return { transform: `translate(${n(x)} ${n(y)})`, "data-id": id };
}

function face({ sort, width, height }: Box, name: string): SVGElement {
  const round = sort === "input" || sort === "output" ? Math.min(height / 2, 16) : 6;
  return s("rect", { class: name, width: n(width), height: n(height), rx: round });
}

function meets(one: Window, other: Window): boolean {
  return one.left <= other.right && one.right >= other.left && one.top <= other.bottom && one.bottom >= other.top;
}

function inside(inner: Box, outer: Box): boolean {
  return (
    inner.x >= outer.x &&
    inner.y >= outer.y &&
    inner.x + inner.width <= outer.x + outer.width &&
    inner.y + inner.height <= outer.y + outer.height
  );
}

/** A path through the points of an edge that leaves and arrives upright. */
function pathOf(curve: Curve): string {
  if (curve.path) {
    return curve.path;
  }
  const [first, ...rest] = curve.points;
  let [x0, y0] = first!;
  let path = `M${n(x0)} ${n(y0)}`;
  for (const [x, y] of rest) {
    const bend = (y - y0) * 0.5;
    path +=
      Math.abs(x - x0) < 0.5 ? `L${n(x)} ${n(y)}` : `C${n(x0)} ${n(y0 + bend)} ${n(x)} ${n(y - bend)} ${n(x)} ${n(y)}`;
    [x0, y0] = [x, y];
  }
  curve.path = path;
  return path;
}

function n(value: number): string {
  return String(Math.round(value * 10) / 10);
}
