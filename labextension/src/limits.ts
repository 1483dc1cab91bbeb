// Figures that the settings can change.
//
// Enters: the settings. Leaves: one record that the parts read when they need it.

/** Operations that are drawn; a larger graph is listed. */
export const MOST_DRAWN = 5000;

/** What is bounded, and where. */
export const limits = {
  /** Graphs with more operations open with their kernels folded. */
  foldFrom: 300,
  /** Recompiles that are remembered for each kernel. */
  recompiles: 300,
};
