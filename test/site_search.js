// SPDX-License-Identifier: Apache-2.0
// Pastes each sentence of the error index, within what g++ prints around it, into the search of a site that docs/site/build.py has written:
// the sentence's entry must come first, or second where another page quotes the sentence.  node test/site_search.js SITE [I/N: every N-th sentence from the I-th]
const fs = require("fs"), path = require("path"), vm = require("vm");
const [site, sample = "0/1"] = process.argv.slice(2);
const [first, step] = sample.split("/").map(Number);

if (!fs.existsSync(path.join(site, "sections.js"))) {
  console.log(`site search: not checked: there is no site in ${site}; docs/site/build.py, which needs Python-Markdown, writes it`);
  process.exit(77);
}
const element = {addEventListener() {}, replaceChildren() {}};
const page = vm.createContext({document: {getElementById: () => element, createElement: () => ({})}, site_root: ""});
const run = (file, more = "") => vm.runInContext(fs.readFileSync(path.join(site, file), "utf8") + more, page);
run("sections.js");
const found = run("search.js", "; found");

const page_text = section => (section.text || "").replace(/\s+/g, " ");

const index = fs.readFileSync(path.join(__dirname, "../docs/errors.md"), "utf8");
const entries = [...index.matchAll(/^### (\S+)\n\n`(shardwise: [^`]*)`/gm)];
let tried = 0, wrong = entries.length < 400 ? 1 : 0;
entries.forEach(([, name, sentence], k) => {
  if (k % step !== first) return;
  ++tried;
  const pasted = `In file included from main.cpp:3:\n/usr/include/shardwise/support/diagnose.hpp:32:66: error: static assertion failed: ${sentence}\n` +
                 "   32 | #define SHARDWISE_X(name, text) static_assert(P != problem::name)\nnote: in expansion of macro 'SHARDWISE_X'";
  const [one, two] = [...found(pasted), {to: "nothing"}, {to: "nothing", text: ""}];
  const quoted = page_text(one).includes(sentence.slice(0, 60));
  if (one.to === `errors.html#${name}` || (quoted && two.to === `errors.html#${name}`)) return;
  ++wrong;
  console.log(`site search: the sentence of ${name} finds ${one.to}`);
});
if (found("zzzz").length !== 0) console.log("site search: a word that no page has finds something", ++wrong);
console.log(`site search: ${tried} of ${entries.length} sentences, ${wrong} wrong`);
process.exit(wrong === 0 && tried > 0 ? 0 : 1);
