// Runs long work in slices, so that the page stays responsive.
//
// Input: work as a generator, which yields wherever it may be interrupted. Output: its result. Work that is short is
// done at once; of longer work, each slice is shorter than a frame.

const SLICE = 8; // milliseconds

/** Runs the work, and passes the result to `done`, at once if one slice suffices. Returns a cancel function. */
export function sliced<T>(
  work: Generator<void, T>,
  done: (result: T) => void,
  now: () => number = () => performance.now(),
): () => void {
  let given = false;
  const slice = (): void => {
    const end = now() + SLICE;
    while (!given) {
      const step = work.next();
      if (step.done) {
        done(step.value);
        return;
      }
      if (now() > end) {
        setTimeout(slice);
        return;
      }
    }
  };
  slice();
  return () => {
    given = true;
  };
}

/** Runs the work to its end. */
export function whole<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) {
      return step.value;
    }
  }
}
