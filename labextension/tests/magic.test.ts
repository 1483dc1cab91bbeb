// The commands add `%%tcompile` to cells, once, and leave other magics alone.

import assert from "node:assert/strict";
import { test } from "node:test";

import { withMagic } from "../src/magic.ts";

test("the magic is added above the code", () => {
  assert.equal(withMagic("y = x", "--time"), "%%tcompile --time\ny = x");
  assert.equal(withMagic("y = x", ""), "%%tcompile\ny = x");
  assert.equal(withMagic("", ""), "%%tcompile\n");
});

test("an option is added to the magic, once", () => {
  assert.equal(withMagic("%%tcompile\ny = x", "--time"), "%%tcompile --time\ny = x");
  assert.equal(withMagic("\n%%tcompile --graph \ny = x", "--time"), "\n%%tcompile --graph --time\ny = x");
  assert.equal(withMagic("%%tcompile --time\ny = x", "--time"), "%%tcompile --time\ny = x");
  assert.equal(withMagic("%%tcompile --dynamic\ny", ""), "%%tcompile --dynamic\ny");
});

test("cells of other magics are left alone", () => {
  assert.equal(withMagic("%%bash\nls", "--time"), null);
  assert.equal(withMagic("%%tcompiled\nls", "--time"), null);
  assert.equal(withMagic("%time f(x)", "--time"), "%%tcompile --time\n%time f(x)");
});
