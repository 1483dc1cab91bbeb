// All kernels that notebooks and consoles of this page run.
//
// Input: the notebooks and consoles that are open. Output: one link for each kernel, and which kernel a cell's code
// ran in. Two notebooks, or a notebook and a console, on one kernel share a link; of their connections one alone
// handles comms, and that one is used.

import type { JupyterFrontEnd } from "@jupyterlab/application";
import type { ISessionContext } from "@jupyterlab/apputils";
import type { ICodeCellModel } from "@jupyterlab/cells";
import type { ConsolePanel, IConsoleTracker } from "@jupyterlab/console";
import type { INotebookTracker, NotebookPanel } from "@jupyterlab/notebook";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Signal } from "@lumino/signaling";
import type { Widget } from "@lumino/widgets";

import { Link } from "./link.ts";
import type { Change } from "./model.ts";

/** Something that runs code: a notebook or a console. */
export type Place = NotebookPanel | ConsolePanel;

/** The links of this page. */
export class Links {
  /** A link was added or removed, a place has another kernel, or another place is in front. */
  readonly changed = new Signal<this, void>(this);
  /** What has changed in the model of a kernel. */
  readonly news = new Signal<this, { link: Link; change: Change }>(this);
  private readonly links = new Map<string, Link>();
  /** The notebooks and consoles that are open. */
  readonly places = new Set<Place>();
  private shown = false;
  private front: Place | null = null;

  constructor(
    private readonly notebooks: INotebookTracker,
    private readonly consoles: IConsoleTracker | null,
    shell: JupyterFrontEnd.IShell,
    private readonly trans: TranslationBundle,
  ) {
    for (const tracker of [notebooks, consoles]) {
      tracker?.forEach((place: Place) => this.add(place));
      tracker?.widgetAdded.connect((_: unknown, place: Place) => this.add(place));
    }
    // The trackers do not report a return: each keeps its own last place as the current one.
    const follow = (): void => {
      const place = [...this.places].find((one) => one === shell.currentWidget);
      if (place !== undefined && place !== this.front) {
        this.front = place;
        this.changed.emit();
      }
    };
    this.front = notebooks.currentWidget ?? consoles?.currentWidget ?? null;
    shell.currentChanged?.connect(follow);
    this.changed.connect(follow); // a place may come to the front before its tracker reports it
    follow();
  }

  /** The link of the notebook or console that is, or was last, in front; null where its kernel has none. */
  get current(): Link | null {
    return this.front === null || this.front.isDisposed ? null : this.of(this.front);
  }

  /** The place that is in front. */
  get currentPlace(): Place | null {
    return this.front === null || this.front.isDisposed ? null : this.front;
  }

  /** The link of a place's kernel. */
  of(place: Place): Link | null {
    const id = place.sessionContext.session?.kernel?.id;
    return id === undefined ? null : (this.links.get(id) ?? null);
  }

  /** The link of the kernel that runs a cell. */
  ofCell(model: ICodeCellModel): Link | null {
    const place = this.placeOf(model);
    return place === null ? null : this.of(place);
  }

  /** The notebook or console that holds a cell. */
  placeOf(model: ICodeCellModel): Place | null {
    const notebook = model.sharedModel.notebook;
    if (notebook) {
      return this.notebooks.find((panel) => panel.model?.sharedModel === notebook) ?? null;
    }
    const holds = (panel: ConsolePanel): boolean => {
      const { cells, promptCell } = panel.console;
      return promptCell?.model === model || [...cells].some((cell) => cell.model === model);
    };
    return this.consoles?.find(holds) ?? null;
  }

  /** The notebooks and consoles that a kernel runs. */
  placesOf(link: Link): Place[] {
    return [...this.places].filter((place) => this.of(place) === link);
  }

  /** Sets whether this page shows anything of tcompile: kernels send nothing otherwise. */
  look(shown: boolean): void {
    this.shown = shown;
    this.links.forEach((link) => link.look(shown));
  }

  private add(place: Place): void {
    const context: ISessionContext = place.sessionContext;
    this.places.add(place);
    const follow = (): void => this.match();
    context.kernelChanged.connect(follow);
    context.sessionChanged.connect(follow);
    (place as Widget).disposed.connect(() => {
      this.places.delete(place);
      this.match();
    });
    this.match();
  }

  /** Makes links for kernels that have none, and closes those of lost connections. */
  private match(): void {
    const live = new Map<string, Link["kernel"]>();
    for (const place of this.places) {
      const kernel = place.isDisposed ? null : place.sessionContext.session?.kernel;
      if (kernel && !kernel.isDisposed && (kernel.handleComms || !live.has(kernel.id))) {
        live.set(kernel.id, kernel);
      }
    }
    for (const [id, link] of [...this.links]) {
      if (live.get(id) !== link.kernel) {
        this.links.delete(id);
        link.dispose();
      }
    }
    for (const [id, kernel] of live) {
      if (!this.links.has(id)) {
        const link = new Link(kernel, this.trans);
        this.links.set(id, link);
        link.model.listeners.add((change) => this.news.emit({ link, change }));
        link.look(this.shown);
      }
    }
    this.changed.emit();
  }
}
