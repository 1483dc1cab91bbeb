// The extension: puts the parts together.
//
// Input: JupyterLab, or Notebook 7. Output: marks and badges in cells, the side panel, the choosers of the stance, the
// commands. The renderer of saved graphs is `render`.

import { ILayoutRestorer } from "@jupyterlab/application";
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { ICommandPalette, IToolbarWidgetRegistry } from "@jupyterlab/apputils";
import type { ICodeCellModel } from "@jupyterlab/cells";
import { CodeMirrorEditor, EditorExtensionRegistry, IEditorExtensionRegistry } from "@jupyterlab/codemirror";
import { IConsoleTracker } from "@jupyterlab/console";
import { INotebookTracker, NotebookActions } from "@jupyterlab/notebook";
import type { NotebookPanel } from "@jupyterlab/notebook";
import { IRenderMimeRegistry } from "@jupyterlab/rendermime";
import { ISettingRegistry } from "@jupyterlab/settingregistry";
import { IStatusBar } from "@jupyterlab/statusbar";
import { ITranslator, nullTranslator } from "@jupyterlab/translation";
import { LabIcon } from "@jupyterlab/ui-components";

import "../style/index.css";
import { About } from "./about.ts";
import { Badges } from "./badges.ts";
import { addCommands } from "./commands.ts";
import { limits } from "./limits.ts";
import { Links } from "./links.ts";
import { Marks } from "./marks.ts";
import { Panel } from "./panel/panel.ts";
import { runCell } from "./run.ts";
import { StanceChooser } from "./stances.ts";
import { Notebooks } from "./surroundings.ts";
import { Timing } from "./timing.ts";

const ID = "tcompile:plugin";
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24"><g class="jp-icon3" fill="#616161">
<rect x="8" y="2" width="8" height="5" rx="1.5"/><rect x="2" y="17" width="8" height="5" rx="1.5"/>
<rect x="14" y="17" width="8" height="5" rx="1.5"/><path d="M11 7h2v4h6v6h-2v-4H7v4H5v-6h6z"/></g></svg>`;
const icon = new LabIcon({ name: "tcompile:icon", svgstr: SVG });

const plugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: "Shows graphs, graph breaks and recompiles of tcompile at the cell and line that caused them.",
  autoStart: true,
  requires: [INotebookTracker, IEditorExtensionRegistry, IRenderMimeRegistry],
  optional: [
    ITranslator,
    ISettingRegistry,
    IConsoleTracker,
    ICommandPalette,
    IToolbarWidgetRegistry,
    IStatusBar,
    ILayoutRestorer,
  ],
  activate: (
    app: JupyterFrontEnd,
    notebooks: INotebookTracker,
    editors: IEditorExtensionRegistry,
    rendermime: IRenderMimeRegistry,
    translator: ITranslator | null,
    settings: ISettingRegistry | null,
    consoles: IConsoleTracker | null,
    palette: ICommandPalette | null,
    toolbars: IToolbarWidgetRegistry | null,
    status: IStatusBar | null,
    restorer: ILayoutRestorer | null,
  ) => {
    const trans = (translator ?? nullTranslator).load("tcompile");
    const about = new About(app, rendermime, trans);
    const links = new Links(notebooks, consoles, app.shell, trans);
    const timing = new Timing(links, trans);
    const marks = new Marks(links, trans, timing, (reason) => void about.open(reason));
    const around = new Notebooks(app, links, marks, trans);
    const panel = new Panel(links, trans, {
      reveal: (link, where) => void around.reveal(link, where),
      revealCell: (link, cell) => void around.revealCell(link, cell),
      cellName: (link, cell) => around.cellName(link, cell),
      about: (reason) => void about.open(reason),
    });
    panel.id = "tcompile-panel";
    panel.title.icon = icon;
    panel.title.caption = "tcompile";
    app.shell.add(panel, "right", { rank: 900, type: "tcompile" });
    restorer?.add(panel, panel.id);
    const badges = new Badges(links, trans, (cell) => {
      app.shell.activateById(panel.id);
      panel.showCell(cell);
    });
    marks.cursor.connect((_, { file, line }) => panel.cursor(file, line));
    NotebookActions.executed.connect(() => {
      void panel.count();
      timing.refresh();
    });
    NotebookActions.outputCleared.connect(() => timing.refresh());

    editors.addExtension({
      name: "tcompile",
      factory: ({ model }) =>
        "type" in model && model.type === "code"
          ? EditorExtensionRegistry.createImmutableExtension([
              marks.extension(model as ICodeCellModel),
              timing.extension(model as ICodeCellModel),
            ])
          : null,
    });
    toolbars?.addFactory<NotebookPanel>(
      "Notebook",
      "tcompile-stance",
      (place) => new StanceChooser(links, () => links.of(place), trans),
    );
    status?.registerStatusItem("tcompile:stance", {
      item: new StanceChooser(links, () => links.current, trans),
      align: "left",
      rank: 50,
    });

    const shown = { marks: true, badges: true, stance: true, panel: false };
    const look = (): void => {
      const any = shown.marks || shown.badges || shown.stance || shown.panel;
      links.look(any && document.visibilityState === "visible");
    };
    panel.seen.connect((_, seen) => {
      shown.panel = seen;
      look();
    });
    document.addEventListener("visibilitychange", look);
    const apply = (loaded: ISettingRegistry.ISettings | null): void => {
      const value = <T>(name: string, otherwise: T): T => (loaded?.composite[name] as T | undefined) ?? otherwise;
      shown.marks = value("marks", true);
      shown.badges = value("badges", true);
      shown.stance = value("stance", true);
      limits.foldFrom = value("foldFrom", limits.foldFrom);
      limits.recompiles = value("recompiles", limits.recompiles);
      marks.show(shown.marks);
      timing.show(shown.marks);
      badges.show(shown.badges);
      document.body.classList.toggle("tc-no-stance", !shown.stance);
      look();
    };
    apply(null);
    void settings?.load(ID).then((loaded) => {
      apply(loaded);
      loaded.changed.connect(() => apply(loaded));
    });

    addCommands(app, palette, trans, {
      panel: () => app.shell.activateById(panel.id),
      nextBreak: () => {
        const editor = notebooks.activeCell?.editor;
        return editor instanceof CodeMirrorEditor && marks.nextBreak(editor.editor);
      },
      inNotebook: () =>
        notebooks.activeCell?.model.type === "code" && notebooks.currentWidget === app.shell.currentWidget,
      runCell: (option) => {
        if (notebooks.currentWidget !== null) {
          void runCell(notebooks.currentWidget, option, trans);
        }
      },
      link: () => links.current,
      toggle: (name) => void settings?.set(ID, name, !shown[name]),
      toggled: (name) => shown[name],
    });
    links.changed.connect(() => app.commands.notifyCommandChanged());
  },
};

export default plugin;
