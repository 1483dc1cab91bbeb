// Limits that the settings can change.
//
// Input: the settings. Output: one record that the parts read when they need it.

/** Operations that are drawn; a larger graph is listed. */
export const MOST_DRAWN = 5000;

/** The limits. */
export const limits = {
  /** Graphs with more operations open with their kernels folded. */
  foldFrom: 300,
  /** Recompiles that are remembered for each kernel. */
  recompiles: 300,
};
