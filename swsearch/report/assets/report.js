// report.js: which query is shown, and everything around its table.

const { queries, positive, subjects, significant } = JSON.parse(document.getElementById("index").textContent);
const home = document.getElementById("query");
const overview = document.getElementById("all");
const MOST_OPEN = 50;  // alignments that are opened at once
const ALL = -1;  // the place of the table of all queries
let table = null, redrawPictures = () => {}, current = null;

/** The place of the query that the address names. */
function wanted() {
  if (["", "#all"].includes(location.hash)) return queries.length > 1 ? ALL : 0;
  const found = /^#query-(\d+)$/.exec(location.hash);
  return found ? Math.min(Math.max(Number(found[1]) - 1, 0), queries.length - 1) : null;
}

function plural(n, one, many) {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

/** Steps between the table of all queries and each of them. */
function chooser() {
  const nav = document.getElementById("queries");
  if (queries.length < 2) return { follow: () => {} };
  const go = (place) => { location.hash = place === ALL ? "#all" : `#query-${place + 1}`; };
  const select = make("select", { id: "which" }, make("option", { value: ALL, text: `All ${queries.length.toLocaleString("en")} queries` }));
  queries.forEach((query, place) => select.append(
    make("option", { value: place, text: `${place + 1}. ${shorten(query.id)}: ${plural(query.hits, "hit", "hits")}` })));
  select.addEventListener("change", () => go(Number(select.value)));
  const before = make("button", { type: "button", text: "Previous" });
  const after = make("button", { type: "button", text: "Next" });
  before.addEventListener("click", () => go(current - 1));
  after.addEventListener("click", () => go(current + 1));
  nav.append(make("div", { class: "steps" }, make("label", {}, "Query", select), before, after));
  overview.querySelectorAll("tbody th").forEach(({ firstChild: name }, place) => {
    name.replaceWith(make("a", { href: `#query-${place + 1}`, text: name.textContent.trim() }), " ");
  });
  for (const title of overview.querySelectorAll(".title")) {
    const { name, organism } = parseTitle(title.textContent);
    title.parentNode.title = title.textContent;
    title.textContent = [name, organism].filter(Boolean).join(", ");
  }
  return { follow: () => {
    select.value = String(current);
    before.disabled = current === ALL;
    after.disabled = current === queries.length - 1;
  } };
}

/** The fields that filter; what is shown is told to people who cannot see it change. */
function filterForm(data) {
  const fields = {};
  const form = make("form", { class: "filters", role: "search", "aria-label": "Filter the hits" });
  const field = (key, label, attributes) => {
    fields[key] = make("input", { autocomplete: "off", spellcheck: "false", ...attributes });
    form.append(make("label", { class: key === "words" ? "search" : null }, label, fields[key]));
  };
  field("words", "Subject holds", { type: "search", placeholder: "words of identifier or title" });
  for (const [key, label] of [["organism", "Organism holds"], ["gene", "Gene holds"]]) {
    const known = new Set(data.hits.map((hit) => hit[key]).filter(Boolean));
    if (!known.size) continue;
    field(key, label, { type: "text", list: `known-${key}` });
    form.append(make("datalist", { id: `known-${key}` }, ...Array.from(known).sort().map((value) => make("option", { value }))));
  }
  if (data.hits.some((hit) => hit.evalue !== null)) field("evalue", "E-value at most", { type: "text", inputmode: "text", placeholder: "1e-5" });
  field("identity", "Identity from %", { type: "text", inputmode: "decimal" });
  field("coverage", "Coverage from %", { type: "text", inputmode: "decimal" });
  form.append(make("button", { type: "reset", text: "Show all" }));
  form.addEventListener("submit", (event) => event.preventDefault());
  return { form, fields };
}

/** Draw a query: heading, pictures, filters, table; or the table of all queries. */
function show(place) {
  current = place;
  table = null;
  redrawPictures = () => {};
  if (place === ALL) return home.replaceChildren(overview);
  const data = JSON.parse(document.getElementById(`data-${place}`).textContent);
  prepare(data);
  const classes = scoreClasses(data.hits);
  const heading = make("h2", {}, make("span", { text: data.id }));
  if (data.title) heading.append(make("span", { class: "title", text: data.title }));
  const pictures = make("div", { class: "pictures" }), folding = { isOpen: false };
  const size = `${plural(data.length, data.queryUnit, `${data.queryUnit}s`)}, ${plural(data.hits.length, "hit", "hits")}`;
  const taxa = data.taxa ? taxaOf(data) : null;
  home.replaceChildren(heading,
    make("p", { class: "note", text: size }, ...(taxa ? [" of ", taxa.link] : []), `. ${data.note}`),
    pictures);
  if (data.profile && data.length) home.append(logoFigure(data));
  table = data.hits.length ? new HitTable(data, positive, classes) : null;
  const scores = { wide: null, figure: null };
  const scoresFigure = (wide) => {  // the same whatever hits are shown
    if (scores.wide !== wide) Object.assign(scores, { wide, figure: distributionFigure(data, data.hits, wide) });
    return scores.figure;
  };
  redrawPictures = (printing = false) => {
    const makers = [];
    if (table) makers.push((wide) => coverageFigure(data, table.shown, classes, wide, folding, (hit, part) => table.jumpTo(hit, part)));
    if (data.distribution) makers.push(scoresFigure);
    if (table) makers.push((wide) => lengthsFigure(data, table.shown, wide));
    pictures.className = `pictures of-${makers.length}`;
    const widths = pictureWidths(pictures);
    pictures.replaceChildren(...makers.map((drawn, k) => drawn(printing ? (k || makers.length < 3 ? 340 : 700) : widths[k % widths.length])));
  };
  folding.turn = () => {
    folding.isOpen = !folding.isOpen;
    redrawPictures();
    pictures.querySelector(".fold").focus({ preventScroll: true });
  };
  if (table) addTable(data, place);
  else {
    home.append(make("p", { text: "No hits." }));
    redrawPictures();
  }
  if (taxa) home.append(taxa.section);
}

/** Room for a picture in each column, in pixels. */
function pictureWidths(pictures) {
  const columns = getComputedStyle(pictures).gridTemplateColumns.split(" ");
  return columns.map((column) => Math.max(240, Math.floor(parseFloat(column)) - 24));
}

function addTable(data, place) {
  const { form, fields } = filterForm(data);
  const shown = make("p", { class: "shown", role: "status" });
  const saves = [["TSV", asTsv, "text/tab-separated-values"], ["CSV", asCsv, "text/csv"]].map(([name, write, type]) => {
    const save = make("button", { type: "button", text: `Download ${name}`, title: "The hits that are shown, in their order" });
    save.addEventListener("click", () => download(fileName(data.id, `.${name.toLowerCase()}`), write(rowsOfHits(data, table.shown)), type));
    return save;
  });
  const all = make("button", { type: "button", text: "Open alignments" });
  all.addEventListener("click", () => {
    const some = table.shown.slice(0, MOST_OPEN);
    const open = !some.every((hit) => table.open.has(hit));
    some.forEach((hit) => table.toggle(hit, open));
    label();
  });
  const label = () => {
    const some = table.shown.slice(0, MOST_OPEN);
    const open = some.length > 0 && some.every((hit) => table.open.has(hit));
    const which = table.shown.length > MOST_OPEN ? `the first ${MOST_OPEN} alignments` : "all alignments";
    all.textContent = `${open ? "Close" : "Open"} ${which}`;
    for (const each of [all, ...saves]) each.disabled = !some.length;
  };
  const update = () => {
    table.choose(filtered(data.hits, fields));
    redrawPictures();  // before the rows, which it would otherwise lay out to know its width
    table.fill();
    const of = table.shown.length === data.hits.length ? "" : ` of ${data.hits.length.toLocaleString("en")}`;
    shown.textContent = `${table.shown.length.toLocaleString("en")}${of} ${data.hits.length === 1 ? "hit" : "hits"} shown`;
    label();
  };
  table.onChange = update;
  const take = takeAway(data, place, table, (text) => { shown.textContent = text; });
  table.onTicks = take.update;
  form.addEventListener("input", update);
  form.addEventListener("reset", () => setTimeout(update));
  home.append(form, make("div", { class: "said" }, shown, make("div", { class: "saves" }, ...saves, all), take.node), table.node);
  update();
}

const steps = chooser();
function follow(first = false) {
  const place = wanted() ?? (first ? Math.min(0, 1 - queries.length) : current);  // current: another part of the page
  if (place === current) return;
  show(place);
  steps.follow();
  if (!first) home.focus({ preventScroll: true });
}
window.addEventListener("hashchange", () => follow());
overview.remove();
if (queries.length) follow(true);

let drawnAt = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === drawnAt) return;  // phones change the height while they scroll
  drawnAt = window.innerWidth;
  redrawPictures();
  if (table) table.redraw();
});
window.addEventListener("beforeprint", () => { redrawPictures(true); if (table) table.redraw(true); });
window.addEventListener("afterprint", () => { redrawPictures(); if (table) table.redraw(); });
