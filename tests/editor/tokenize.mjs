// Tokenizes files as Visual Studio Code does: node tokenize.mjs NODE_MODULES GRAMMAR FILE…, one JSON list of [line, column, text, scope] a file.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [modules, grammarPath, ...files] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const textmate = require("vscode-textmate");
const oniguruma = require("vscode-oniguruma");
await oniguruma.loadWASM(readFileSync(`${modules}/vscode-oniguruma/release/onig.wasm`).buffer);
const registry = new textmate.Registry({
  onigLib: Promise.resolve({
    createOnigScanner: (sources) => new oniguruma.OnigScanner(sources),
    createOnigString: (text) => new oniguruma.OnigString(text),
  }),
  loadGrammar: async () => textmate.parseRawGrammar(readFileSync(grammarPath, "utf8"), grammarPath),
});
const grammar = await registry.loadGrammar("source.mir");
for (const file of files) {
  const found = [];
  let state = textmate.INITIAL;
  readFileSync(file, "utf8").split("\n").forEach((line, number) => {
    const { tokens, ruleStack } = grammar.tokenizeLine(line, state);
    state = ruleStack;
    for (const { startIndex, endIndex, scopes } of tokens)
      found.push([number, startIndex, line.slice(startIndex, endIndex), scopes.length > 1 ? scopes.at(-1) : ""]);
  });
  console.log(JSON.stringify(found));
}
