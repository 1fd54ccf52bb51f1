// titles.js: description, organism and gene of a subject, from titles as UniProt, UniRef and NCBI write them.

const JOINED = / >(?=\S{0,30}[A-Za-z|_]\S{0,30}\d)/;  // before a further title; Python splits at control-A
const TAGS = / (OS|OX|GN|PE|SV|n(?==\d+ Tax=)|Tax|TaxID|RepID)=/;
const FIELDS = /\[(gene|organism|protein)=([^\]]{0,200})\]/g;
const LAST_BRACKETS = /^(.*?) ?\[((?:[^[\]]|\[[^[\]]*\])+)\]$/;
const ORGANISM = /^\[?[A-Z][a-z]{2}|^[^=]*\S \S/;  // not a cofactor: [NADP], [Cu-Zn]

/** Titles of a subject, several where records of identical sequences were merged. */
function titlesOf(hit) {
  return hit.titles.flatMap((title) => title.split(JOINED));
}

/** Parts of a title without its identifier; null where the title has none. */
function parseTitle(text) {
  const found = (name, organism, gene) => ({
    name: name.trim().replace(/^MULTISPECIES: /, "").replace(/^RecName: Full=([^;]*).*/, "$1") || null,
    organism: organism || null, gene: gene || null,
  });
  const [name, ...parts] = ` ${text}`.split(TAGS), tags = {};
  for (let k = 0; k < parts.length; k += 2) tags[parts[k]] = parts[k + 1].trim();
  if (tags.OS || tags.Tax || tags.GN) return found(name, tags.OS || tags.Tax, tags.GN);
  for (const [, key, value] of text.matchAll(FIELDS)) tags[key] = value;
  if (tags.gene || tags.organism || tags.protein) {
    return found(tags.protein || text.slice(0, text.indexOf("[")), tags.organism, tags.gene);
  }
  const [, before, inside] = LAST_BRACKETS.exec(text) || [];
  return inside && !inside.includes("=") && ORGANISM.test(inside) ? found(before, inside) : found(text);
}

/** Work out what a row shows of titles, and the texts that filters look through. */
function readTitles(hit) {
  const [first, ...others] = titlesOf(hit);
  const own = first.startsWith(hit.id) ? first.slice(hit.id.length).trim() : first;
  const all = [own, ...others.map((title) => title.replace(/^\S+ ?/, ""))].map(parseTitle);
  Object.assign(hit, all[0]);
  const texts = (key) => [...new Set(all.map((each) => each[key]))].join("\n").toLowerCase();
  hit.texts = { words: hit.titles.join(" ").toLowerCase(), organism: texts("organism"), gene: texts("gene") };
}
