// SPDX-License-Identifier: Apache-2.0
// Looks for what is typed, or pasted from a compiler, among the sections of all pages: those that have most of its words, and of its
// runs of two and three words, come first; what few sections have counts more. Runs tell the section that says a sentence from a long one
// that happens to have all of its words.
const words = text => {
  const all = text.toLowerCase().match(/[a-z_][a-z0-9_]+/g) || [];
  const runs = n => all.slice(n - 1).map((_, i) => all.slice(i, i + n).join(" "));
  return new Set([...all, ...runs(2), ...runs(3)]);
};
let sections = null;
function found(typed) {
  if (!sections) sections = pages_text.map(s => ({...s, words: words(s.title + " " + s.text)}));
  const asked = [...words(typed)];
  const rarity = asked.map(w => {
    const n = sections.filter(s => s.words.has(w)).length;
    return n ? Math.log(1 + sections.length / n) : 0;
  });
  return sections.map(s => ({s, score: asked.reduce((sum, w, i) => sum + (s.words.has(w) ? rarity[i] : 0), 0)}))
      .filter(x => x.score > 0).sort((a, b) => b.score - a.score).slice(0, 12).map(x => x.s);
}
document.getElementById("search").addEventListener("input", event => {
  const list = document.getElementById("found");
  list.replaceChildren(...found(event.target.value).map(s => {
    const a = document.createElement("a");
    a.href = s.to;
    a.textContent = s.title;
    return a;
  }));
});
