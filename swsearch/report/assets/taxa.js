// taxa.js: how many hits each taxon has, where the database knows taxa.

const FIRST_TAXA = 10;  // the others are folded
const TAXONOMY = "https://www.ncbi.nlm.nih.gov/datasets/taxonomy/";

/** A table of some taxa, with a row of names; columns that no taxon of the query has are left out. */
function taxaTable(data, caption, taxa) {
  const hasKingdoms = data.taxa.some((taxon) => taxon.kingdom), hasEvalues = data.taxa.some((taxon) => taxon.evalue !== null);
  const number = (text) => make("td", { class: "number", text });
  const heads = [["Taxon", null], ["Taxid", "number"], hasKingdoms && ["Superkingdom", "small-out"], ["Hits", "number"],
    hasEvalues && ["Best E-value", "number"]].filter(Boolean);
  const body = make("tbody");
  const row = (taxon) => make("tr", {},
    make("th", { scope: "row", text: shorten(taxon.name || "name not known") }, make("span", { class: "title", text: shorten(taxon.common) })),
    make("td", { class: "number" }, make("a", { href: `${TAXONOMY}${taxon.taxid}/`, target: "_blank", rel: "noopener noreferrer",
      "aria-label": `${taxon.taxid} at NCBI`, text: taxon.taxid })),
    ...(hasKingdoms ? [make("td", { class: "small-out", text: shorten(taxon.kingdom) })] : []),
    number(taxon.hits.toLocaleString("en")),
    ...(hasEvalues ? [number(evalueText(taxon.evalue))] : []));
  const more = make("div", { class: "more" });
  const fill = () => {
    const drawn = body.children.length;
    body.append(...taxa.slice(drawn, drawn + PAGE).map(row));
    const left = taxa.length - body.children.length;
    if (left <= 0) return more.remove();
    const button = make("button", { type: "button", text: `Show ${Math.min(left, PAGE)} more of ${left.toLocaleString("en")}` });
    button.addEventListener("click", fill);
    more.replaceChildren(button);
  };
  const head = make("tr", {}, ...heads.map(([text, kind]) => make("th", { scope: "col", class: kind, text })));
  const table = make("table", {}, make("caption", { text: caption }), make("thead", {}, head), body);
  const node = make("div", {}, make("div", { class: "wide" }, table), more);
  fill();
  return node;
}

/** Taxa below the hits, which are so seen at once, and a link to them for the note above. */
function taxaOf(data) {
  const few = data.taxa.slice(0, FIRST_TAXA), others = data.taxa.slice(FIRST_TAXA);
  const without = data.withoutTaxa ? ` ${plural(data.withoutTaxa, "hit has", "hits have")} none.` : "";
  const section = make("section", { class: "taxa", tabindex: "-1", "aria-labelledby": "taxa" },
    make("h3", { id: "taxa", text: "Taxa" }),
    taxaTable(data, `All hits by taxon, the most frequent first; a hit of several taxa counts for each.${without}`, few));
  if (others.length) {
    const details = make("details", {}, make("summary", { text: plural(others.length, "further taxon", "further taxa") }));
    details.addEventListener("toggle", () => {
      if (details.children.length === 1) details.append(taxaTable(data, "Further taxa.", others));
    });
    section.append(details);
  }
  const link = make("a", { href: "#taxa", text: plural(data.taxa.length, "taxon", "taxa") });
  link.addEventListener("click", (event) => {
    event.preventDefault();  // the address keeps the query
    section.scrollIntoView();
    section.focus({ preventScroll: true });
  });
  return { section, link };
}
