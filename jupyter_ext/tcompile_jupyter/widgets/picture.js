// A picture whose parts can be clicked: parts are elements with data-node, details are shown beside it as text.
// A part inside another is named by both: "outer/inner".

function pathOf(part) {
  const names = [];
  for (let at = part; at; at = at.parentElement && at.parentElement.closest("[data-node]")) {
    names.unshift(at.dataset.node);
  }
  return names.join("/");
}

function render({ model, el }) {
  el.classList.add("tcw-panel");
  const view = document.createElement("div");
  view.className = "tcw-view";
  const side = document.createElement("div");
  side.className = "tcw-side";
  side.setAttribute("aria-live", "polite");
  const tools = document.createElement("div");
  tools.className = "tcw-tools";
  el.replaceChildren(view, side, tools);
  el.classList.toggle("tcw-below", model.get("below"));
  let zoom = 0; // 0: all of it is in view; before the first click, as far as it can be read then
  let readable = true;
  let shown = ""; // the size of the picture that was scrolled to its beginning

  function size() {
    const svg = view.querySelector("svg");
    if (!svg || !model.get("zooms")) return;
    const { width, height } = svg.viewBox.baseVal;
    svg.style.maxWidth = "none";
    svg.style.height = "auto";
    const room = el.clientWidth ? Math.min(el.clientWidth / width, 620 / height) : 1;
    svg.style.width = width * (zoom || Math.min(1, Math.max(readable ? 0.75 : 0, room))) + "px";
    const now = `${width} ${height}`;
    if (shown === now || !el.clientWidth) return;
    shown = now;
    begin(svg);
  }

  // Scrolls to the topmost part: the corner of a wide picture may be empty.
  function begin(svg) {
    const boxes = [...svg.querySelectorAll("[data-node]")].map((part) => part.getBoundingClientRect());
    if (!boxes.length) return;
    const top = boxes.reduce((one, two) => (two.top < one.top ? two : one));
    view.scrollLeft += top.left + top.width / 2 - (view.getBoundingClientRect().left + view.clientWidth / 2);
  }

  function scale(factor) {
    const svg = view.querySelector("svg");
    if (!svg) return;
    const now = zoom || svg.getBoundingClientRect().width / svg.viewBox.baseVal.width || 1;
    zoom = factor ? Math.min(4, Math.max(0.02, now * factor)) : 0;
    readable = false;
    size();
  }

  for (const [sign, says, factor] of [["−", "smaller", 0.8], ["+", "larger", 1.25], ["fit", "fit the room", 0]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = sign;
    button.title = says;
    button.setAttribute("aria-label", says);
    button.addEventListener("click", () => scale(factor));
    tools.append(button);
  }

  function mark() {
    const chosen = model.get("selected");
    for (const part of view.querySelectorAll("[data-node]")) {
      part.classList.toggle("tcw-selected", pathOf(part) === chosen);
    }
    const rows = model.get("details")[chosen];
    side.replaceChildren();
    side.classList.toggle("tcw-empty", !rows);
    if (!rows) {
      side.textContent = Object.keys(model.get("details")).length ? model.get("hint") : "";
      return;
    }
    for (const [heading, text] of rows) {
      const head = document.createElement("div");
      head.className = "tcw-heading";
      head.textContent = heading;
      const body = document.createElement("div");
      body.className = "tcw-text";
      body.textContent = text;
      side.append(head, body);
    }
  }

  function draw() {
    const { scrollLeft, scrollTop } = view;
    view.innerHTML = model.get("html");
    for (const part of view.querySelectorAll("[data-node]")) {
      if (model.get("details")[pathOf(part)]) {
        part.setAttribute("tabindex", "0");
        part.setAttribute("role", "button");
      }
    }
    tools.hidden = !model.get("zooms") || !view.querySelector("svg");
    const before = shown;
    size();
    mark();
    if (shown === before) view.scrollTo(scrollLeft, scrollTop); // the same picture, or one of its size
  }

  function choose(event) {
    const part = event.target.closest("[data-node]");
    if (!part) return;
    const name = pathOf(part);
    if (!model.get("details")[name]) return;
    model.set("selected", model.get("selected") === name ? "" : name);
    model.save_changes();
  }

  view.addEventListener("click", choose);
  view.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(event);
    }
  });
  model.on("change:html", draw);
  model.on("change:details", draw);
  model.on("change:selected", mark);
  draw();
  const watch = new ResizeObserver(size);
  watch.observe(el);
  return () => {
    watch.disconnect();
    model.off("change:html", draw);
    model.off("change:details", draw);
    model.off("change:selected", mark);
  };
}

export default { render };
