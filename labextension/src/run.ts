// Runs the active cell with `%%tcompile`, for people who know no magic.
//
// Input: a notebook, and an option. Output: the cell, with the magic in its text, has run.

import { Notification } from "@jupyterlab/apputils";
import { NotebookActions } from "@jupyterlab/notebook";
import type { NotebookPanel } from "@jupyterlab/notebook";
import type { TranslationBundle } from "@jupyterlab/translation";

import { withMagic } from "./magic.ts";

/** Adds `%%tcompile` and an option to the active cell, loads tcompile in the kernel, and runs the cell. */
export async function runCell(panel: NotebookPanel, option: string, trans: TranslationBundle): Promise<void> {
  const { content, sessionContext } = panel;
  const cell = content.activeCell?.model.sharedModel;
  const kernel = sessionContext.session?.kernel;
  const source = cell === undefined ? null : withMagic(cell.source, option);
  if (cell === undefined || !kernel) {
    return;
  }
  if (source === null) {
    Notification.warning(trans.__("This cell has a magic of its own, so %1 cannot be added.", "%%tcompile"));
    return;
  }
  // Loading it again does nothing, and a silent request leaves no trace in the history.
  const loading = kernel.requestExecute({ code: "%load_ext tcompile", silent: true, store_history: false });
  const { content: reply } = await loading.done;
  if (reply.status === "error") {
    Notification.error(trans.__("tcompile cannot be loaded in this kernel: %1", reply.evalue), { autoClose: false });
    return;
  }
  if (source !== cell.source) {
    cell.setSource(source);
  }
  await NotebookActions.run(content, sessionContext);
}
