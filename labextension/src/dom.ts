// Elements of the page, made of data.
//
// Input: a tag, attributes, children. Output: an element. Text is always set as text, so nothing that comes from the
// user's code, or from an untrusted notebook, is parsed as HTML.

type Child = Node | string | number | null | false | undefined;
type Attributes = Record<string, string | number | boolean | ((event: Event) => void) | undefined>;

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. Attributes that are functions are listeners; `true` is an attribute without a value. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Gives an element these children. Unchanged children are not touched, so they keep their focus and cost no layout. */
export function keep(parent: Element, children: readonly Node[]): void {
  const wanted = new Set(children);
  for (const child of [...parent.childNodes]) {
    if (!wanted.has(child)) {
      child.remove();
    }
  }
  let next = parent.firstChild;
  for (const child of children) {
    if (child === next) {
      next = child.nextSibling;
    } else {
      parent.insertBefore(child, next);
    }
  }
}

/** Renders text with its `quoted` parts as code. */
export function code(text: string): (string | HTMLElement)[] {
  const parts = text.split("`");
  return parts.length % 2 ? parts.map((part, n) => (n % 2 ? h("code", {}, part) : part)) : [text];
}

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      element.addEventListener(name, value);
    } else if (value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) {
      element.append(child instanceof Node ? child : String(child));
    }
  }
  return element;
}
