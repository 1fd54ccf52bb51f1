// table.js: the hits of a query as rows that can be sorted, filtered, opened and taken away.

const PAGE = 500;  // rows drawn at a time; more on request

/** Share of the query that any alignment covers, in per cent: rounded, but 100 only where all is meant. */
function coverageOf(hit, length) {
  const spans = hit.hsps.map((hsp) => rangesOf(hsp, measure(hsp)).query).sort((a, b) => a[0] - b[0]);
  let covered = 0, reached = 0;
  for (const [from, to] of spans) {
    covered += Math.max(0, to - Math.max(from, reached));
    reached = Math.max(reached, to);
  }
  if (!length) return 0;
  const whole = Math.floor((200 * covered + length) / (2 * length));
  return whole === 100 && covered < length ? 99 : whole;
}

/** What rows are sorted and filtered by, worked out once. */
function prepare(data) {
  data.queryUnit = ["blastx", "tblastx"].includes(data.program) ? "nucleotide" : "residue";
  data.subjectUnit = ["tblastn", "tblastx"].includes(data.program) ? "nucleotide" : "residue";
  data.hits.forEach((hit, place) => {
    hit.rank = place + 1;
    hit.identity = hit.hsps.length ? measure(hit.hsps[0]).identity : 0;
    hit.coverage = coverageOf(hit, data.length);
    hit.iteration = hit.hsps.length ? hit.hsps[0].iteration : undefined;
    readTitles(hit);
  });
}

/** Columns that a query's hits have values for; screens narrower than 820 and 500 pixels leave small-out and phone-out out. */
function columnsOf(data) {
  const any = (key) => data.hits.some((hit) => hit[key] !== null);
  return [
    { key: "rank", name: "#", say: "Rank by score", kind: "number small-out" },
    { key: "id", name: "Subject", say: "Subject", kind: any("name") || any("organism") ? "id" : "id alone" },
    any("name") && { key: "name", name: "Description", say: "Description", kind: "words phone-out" },
    any("organism") && { key: "organism", name: "Organism", say: "Organism", kind: "words organism phone-out" },
    any("gene") && { key: "gene", name: "Gene", say: "Gene", kind: "gene small-out" },
    { key: "score", name: "Score", say: "Score, matrix units", down: true, kind: "number" },
    any("bits") && { key: "bits", name: "Bits", say: "Bit score", down: true, text: (hit) => bitsText(hit.bits), kind: "number small-out" },
    any("z") && { key: "z", name: "Z", say: "Z-score, standard deviations above the mean", down: true,
      text: (hit) => (hit.z === null ? "nan" : oneDecimal(hit.z)), kind: "number small-out" },
    any("evalue") && { key: "evalue", name: "E-value", say: "E-value", text: (hit) => evalueText(hit.evalue), kind: "number" },
    data.hits.some((hit) => hit.iteration) && { key: "iteration", name: "Iter.", say: "Iteration that first included the subject",
      kind: "number small-out" },
    { key: "identity", name: "Ident.", say: "Identities of the best alignment, per cent", down: true,
      text: (hit) => hit.identity.toFixed(1), kind: any("evalue") ? "number phone-out" : "number" },
    { key: "coverage", name: "Cover", say: "Query covered, per cent", down: true, kind: "number phone-out" },
    { key: "length", name: "Length", say: `Subject's length, ${data.subjectUnit}s`, down: true, text: (hit) => hit.length.toLocaleString("en"),
      plain: (hit) => hit.length, kind: "number small-out" },
  ].filter(Boolean);
}

/** Text of a hit in a column. */
function cellText(column, hit) {
  return column.text ? column.text(hit) : hit[column.key] ?? "";
}

/** Hits in the order of a column; equal ones, and those without a value, by rank. */
function sorted(hits, key, down) {
  const sign = down ? -1 : 1, { compare } = new Intl.Collator("en", { numeric: true });
  return hits.slice().sort((a, b) => {
    const [x, y] = [a[key], b[key]];
    if (x === y) return a.rank - b.rank;
    if (x === null || y === null) return x === null ? 1 : -1;
    return sign * (typeof x === "string" ? compare(x, y) : x - y) || a.rank - b.rank;
  });
}

/** Whether a hit or an alignment may be chance, by its E-value. */
function isWeak(each) {
  return each.evalue !== null && each.evalue > significant;
}

/** A number that a person typed; null where the field is empty, NaN where it holds something else. */
function numberIn(field) {
  const text = field.value.trim().replace(",", ".");
  return text === "" ? null : Number(text);
}

/** What the filters let through; a field that holds no number is marked and lets all through. */
function filtered(hits, fields) {
  const words = ["words", "organism", "gene"].filter((key) => fields[key])
    .flatMap((key) => fields[key].value.toLowerCase().split(/\s+/).map((word) => [key, word]));
  const limits = {};
  for (const key of ["evalue", "identity", "coverage"]) {
    if (!fields[key]) continue;
    const value = numberIn(fields[key]);
    fields[key].setAttribute("aria-invalid", String(Number.isNaN(value)));
    if (value !== null && !Number.isNaN(value)) limits[key] = value;
  }
  return hits.filter((hit) =>
    words.every(([key, word]) => hit.texts[key].includes(word)) &&
    (limits.evalue === undefined || (hit.evalue !== null && hit.evalue <= limits.evalue)) &&
    (limits.identity === undefined || hit.identity >= limits.identity) &&
    (limits.coverage === undefined || hit.coverage >= limits.coverage));
}

const TSV_COLUMNS = ["qaccver", "saccver", "pident", "length", "mismatch", "gapopen", "qstart", "qend", "sstart", "send",
  "evalue", "bitscore", "score", "qcovs", "stitle"];

/** The hits in BLAST's columns, a row an alignment, after a row of names. */
function rowsOfHits(data, hits) {
  const rows = [[...TSV_COLUMNS, ...(data.program ? ["frames"] : [])]];
  for (const hit of hits) {
    for (const hsp of hit.hsps) {
      const m = measure(hsp);
      rows.push([data.id, hit.id, m.identity.toFixed(3), m.length, m.length - hsp.identities - m.gaps, m.openings,
        ...m.query, ...m.subject, evalueText(hsp.evalue), hsp.bits === null ? "nan" : hsp.bits > 99.9 ? bitsText(hsp.bits) : bitsText(hsp.bits).padStart(4),
        hsp.score, hit.coverage, hit.titles[0], ...(data.program ? [hsp.frames.join("/")] : [])]);
    }
  }
  return rows;
}

function asTsv(rows) {
  return rows.map((row) => row.join("\t") + "\n").join("");
}

/** Rows as RFC 4180 has them. */
function asCsv(rows) {
  const quoted = (cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  return rows.map((row) => row.map(quoted).join(",") + "\r\n").join("");
}

/** The table of one query: draws rows, sorts, opens. */
class HitTable {
  constructor(data, positive, classes) {
    Object.assign(this, { data, positive, classes, columns: columnsOf(data), key: "rank", down: false, most: PAGE });
    this.shown = data.hits;
    this.open = new Set();
    this.ticked = new Set();
    this.rows = new Map();
    this.hits = new WeakMap();  // of rows
    this.all = make("input", { type: "checkbox", "aria-label": "Tick all hits that are shown" });
    const head = make("tr", {}, make("td", { class: "tick" }, this.all));
    this.heads = this.columns.map((column) => {
      const button = make("button", { type: "button", text: column.name, title: `Sort by: ${column.say}` });
      button.setAttribute("aria-label", column.say);
      button.addEventListener("click", () => this.sortBy(column));
      return make("th", { scope: "col", class: column.kind }, button);
    });
    head.append(...this.heads);
    this.pattern = this.patternRow();
    this.body = make("tbody");
    this.more = make("div", { class: "more" });
    const weak = data.hits.some(isWeak) ? ` Grey rows have an E-value above ${significant}: such hits may be chance.` : "";
    this.table = make("table", {}, make("caption", {}, make("span", { class: "help", text: "Choose a heading to sort, a row to see its alignment." }), weak),
      make("thead", {}, head), this.body);
    this.node = make("div", {}, make("div", { class: "hits-table" }, this.table), this.more);
    this.body.addEventListener("click", (event) => this.onClick(event));
    this.body.addEventListener("change", (event) => this.onTick(event));
    this.all.addEventListener("change", () => this.tick(this.shown, this.all.checked));
    this.mark();
  }

  /** A row opens its hit, except where something in it has a purpose of its own or text is being selected. */
  onClick(event) {
    const row = event.target.closest("tr"), hit = this.hits.get(row);
    const isButton = event.target.closest(".open-hit") !== null;
    if (!hit || (!isButton && event.target.closest("a, input"))) return;
    if (event.target.closest(".tick")) return this.tick([hit], !this.ticked.has(hit));  // beside the box
    if (!isButton && !getSelection().isCollapsed) return;
    this.toggle(hit);
    if (!this.open.has(hit)) return;
    row.querySelector(".open-hit").focus({ preventScroll: true });
    if (row.nextElementSibling.getBoundingClientRect().bottom > innerHeight) row.scrollIntoView({ block: "start" });
  }

  onTick(event) {
    const hit = this.hits.get(event.target.closest("tr"));
    if (hit) this.tick([hit], event.target.checked);
  }

  /** Tick hits, or take their ticks away, whether their rows are drawn or not. */
  tick(hits, isTicked) {
    for (const hit of hits) {
      if (isTicked) this.ticked.add(hit);
      else this.ticked.delete(hit);
      if (this.rows.has(hit)) this.rows.get(hit).querySelector("input").checked = isTicked;
    }
    this.markTicks();
    this.onTicks();
  }

  markTicks() {
    const n = this.ticked.size ? this.shown.filter((hit) => this.ticked.has(hit)).length : 0;
    this.all.checked = n > 0 && n === this.shown.length;
    this.all.indeterminate = n > 0 && n < this.shown.length;
  }

  /** The hits that are ticked, shown or not, in the table's order. */
  taken() {
    return sorted(this.data.hits.filter((hit) => this.ticked.has(hit)), this.key, this.down);
  }

  mark() {
    this.columns.forEach((column, place) => {
      if (column.key !== this.key) this.heads[place].removeAttribute("aria-sort");
      else this.heads[place].setAttribute("aria-sort", this.down ? "descending" : "ascending");
    });
  }

  sortBy(column) {
    this.down = column.key === this.key ? !this.down : Boolean(column.down);
    this.key = column.key;
    this.mark();
    this.onChange();
  }

  /** Show these hits, in the table's order, once it is filled. */
  choose(hits) {
    this.shown = sorted(hits, this.key, this.down);
    this.markTicks();
    this.onTicks();
  }

  /** Draw the rows, all of them on paper, and a line where the E-value passes the limit if it does so once. */
  fill() {
    const rows = [], most = this.printing ? Infinity : this.most;
    const turns = this.shown.filter((hit, k) => k && isWeak(hit) !== isWeak(this.shown[k - 1]));
    for (const hit of this.shown.slice(0, most)) {
      if (turns.length === 1 && turns[0] === hit) {
        const text = isWeak(hit) ? `E-value above ${significant} from here on: may be chance` : `E-value at most ${significant} from here on`;
        rows.push(make("tr", { class: "divider" }, make("td", { colspan: this.columns.length + 1, text })));
      }
      rows.push(this.rowOf(hit));
      if (this.open.has(hit)) rows.push(this.detailOf(hit));
    }
    this.body.replaceChildren(...rows);
    this.more.replaceChildren();
    const left = this.shown.length - most;
    if (left <= 0) return;
    const button = make("button", { type: "button", text: `Show ${Math.min(left, PAGE)} more of ${left.toLocaleString("en")}` });
    button.addEventListener("click", () => { this.most += PAGE; this.fill(); });
    this.more.append(button);
  }

  /** A row without its hit, to be copied: half the time of making each anew. */
  patternRow() {
    const row = make("tr", {}, make("td", { class: "tick" }, make("input", { type: "checkbox" })));
    for (const column of this.columns) {
      row.append(column.key !== "id" ? make("td", { class: column.kind }) : make("th", { scope: "row", class: column.kind },
        make("button", { type: "button", class: "open-hit", "aria-expanded": "false" }, make("span", { "aria-hidden": "true" }))));
    }
    return row;
  }

  rowOf(hit) {
    if (this.rows.has(hit)) return this.rows.get(hit);
    const row = this.pattern.cloneNode(true), box = row.firstChild.firstChild, name = shorten(hit.id);
    box.setAttribute("aria-label", `Tick ${name}`);
    box.checked = this.ticked.has(hit);
    row.title = hit.titles[0];
    if (isWeak(hit)) row.className = "weak";
    this.columns.forEach((column, place) => {
      const cell = row.childNodes[place + 1];
      if (column.key !== "id") { cell.textContent = shorten(String(cellText(column, hit))); return; }
      const button = cell.firstChild, link = linkTo(hit.id);
      button.firstChild.className = `chip ${this.classes.of(hit)}`;
      button.append(name);
      if (hit.name) cell.dataset.name = shorten(hit.name);  // phones show it below the identifier
      if (hit.hsps.length > 1) cell.append(make("span", { class: "title", text: `\u00d7${hit.hsps.length}`, title: `${hit.hsps.length} alignments` }));
      if (link) cell.append(" ", Object.assign(link, { textContent: "\u2197", title: link.ariaLabel }));
    });
    this.rows.set(hit, row);
    this.hits.set(row, hit);
    return row;
  }

  detailOf(hit) {
    const cell = make("td", { colspan: this.columns.length + 1 });
    const width = Math.max(200, this.node.clientWidth - 26);
    const detail = hitDetail(hit, this.data, this.positive, this.classes, this.printing ? 640 : width);
    if (!this.printing) detail.style.maxWidth = `${width}px`;  // where the table is wider than the screen
    cell.append(detail);
    return make("tr", { class: "detail" }, cell);
  }

  toggle(hit, open = !this.open.has(hit)) {
    const row = this.rowOf(hit);
    row.querySelector(".open-hit").setAttribute("aria-expanded", String(open));
    if (open === this.open.has(hit)) return;
    if (open) {
      this.open.add(hit);
      if (row.isConnected) row.after(this.detailOf(hit));
    } else {
      this.open.delete(hit);
      if (row.nextElementSibling && row.nextElementSibling.classList.contains("detail")) row.nextElementSibling.remove();
    }
  }

  /** Show one of a hit's alignments wherever its row is. */
  jumpTo(hit, part = 0) {
    const place = this.shown.indexOf(hit);
    if (place >= this.most) { this.most = place + 1; this.fill(); }
    this.toggle(hit, true);
    const row = this.rowOf(hit);
    (part ? row.nextElementSibling.querySelectorAll("h3")[part] : row).scrollIntoView({ block: "start" });
    row.querySelector(".open-hit").focus({ preventScroll: true });
  }

  /** Draw open alignments anew, in as many columns as there is room for; on paper all rows. */
  redraw(printing = false) {
    if (this.open.size || printing !== Boolean(this.printing)) { this.printing = printing; this.fill(); }
  }
}
