// A plotly figure, drawn anew in place whenever its data or layout change. The library comes from the kernel, once.

const loading = new Map();

async function plotly(model) {
  const id = model.get("library").replace("IPY_MODEL_", "");
  if (!loading.has(id)) {
    loading.set(id, model.widget_manager.get_model(id).then(async (library) => {
      // In a function of its own, so that it neither meets a module loader of the page nor leaves anything behind.
      const text = `export default (function () {
        const module = { exports: {} }; const exports = module.exports; const define = undefined;
        ${library.get("code")}
        ; return module.exports;
      }).call(globalThis);`;
      const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
      try {
        return (await import(/* webpackIgnore: true */ address)).default;
      } finally {
        URL.revokeObjectURL(address);
      }
    }));
    loading.get(id).catch(() => loading.delete(id));
  }
  return loading.get(id);
}

async function render({ model, el }) {
  el.classList.add("tcw-plot");
  const place = document.createElement("div");
  el.append(place);
  const library = await plotly(model);
  let waiting = 0;
  function draw() {
    cancelAnimationFrame(waiting); // data and layout change together
    waiting = requestAnimationFrame(() => {
      const copy = (name) => structuredClone(model.get(name)); // plotly writes into what it is given
      library.react(place, copy("data"), copy("layout_of_plot"), { responsive: true, displaylogo: false });
    });
  }
  model.on("change:data", draw);
  model.on("change:layout_of_plot", draw);
  draw();
  return () => {
    cancelAnimationFrame(waiting);
    model.off("change:data", draw);
    model.off("change:layout_of_plot", draw);
    library.purge(place);
  };
}

export default { render };
