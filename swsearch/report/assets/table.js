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
    hit.words = hit.titles.join(" ").toLowerCase();
  });
}

/** The columns that a query's hits have numbers for. */
function columnsOf(data) {
  const any = (key) => data.hits.some((hit) => hit[key] !== null);
  const bits = any("bits");
  return [
    { key: "rank", name: "#", say: "Rank by score", down: false, text: (hit) => hit.rank, small: false },
    { key: "id", name: "Subject", say: "Subject", down: false },
    { key: "score", name: "Score", say: "Score, matrix units", down: true, text: (hit) => hit.score, small: !bits },
    bits && { key: "bits", name: "Bits", say: "Bit score", down: true, text: (hit) => bitsText(hit.bits), small: true },
    any("z") && { key: "z", name: "Z", say: "Z-score, standard deviations above the mean", down: true,
      text: (hit) => (hit.z === null ? "nan" : oneDecimal(hit.z)), small: false },
    any("evalue") && { key: "evalue", name: "E-value", say: "E-value", down: false, text: (hit) => evalueText(hit.evalue), small: true },
    data.hits.some((hit) => hit.iteration) && { key: "iteration", name: "Iter.", say: "Iteration that first included the subject",
      down: false, text: (hit) => hit.iteration, small: false },
    { key: "identity", name: "Ident.", say: "Identities of the best alignment, per cent", down: true,
      text: (hit) => hit.identity.toFixed(1), small: true },
    { key: "coverage", name: "Cover", say: "Query covered, per cent", down: true, text: (hit) => hit.coverage, small: true },
    { key: "length", name: "Length", say: `Subject's length, ${data.subjectUnit}s`, down: true, text: (hit) => hit.length.toLocaleString("en"),
      plain: (hit) => hit.length, small: false },
  ].filter(Boolean);
}

/** Hits in the order of a column; equal ones, and those without a number, by rank. */
function sorted(hits, key, down) {
  const sign = down ? -1 : 1;
  return hits.slice().sort((a, b) => {
    const [x, y] = [a[key], b[key]];
    if (x === y) return a.rank - b.rank;
    if (x === null || y === null) return x === null ? 1 : -1;
    return sign * (x < y ? -1 : 1);
  });
}

/** A number that a person typed; null where the field is empty, NaN where it holds something else. */
function numberIn(field) {
  const text = field.value.trim().replace(",", ".");
  return text === "" ? null : Number(text);
}

/** What the filters let through; a field that holds no number is marked and lets all through. */
function filtered(hits, fields) {
  const words = fields.words.value.toLowerCase().split(/\s+/).filter(Boolean);
  const limits = {};
  for (const key of ["evalue", "identity", "coverage"]) {
    if (!fields[key]) continue;
    const value = numberIn(fields[key]);
    fields[key].setAttribute("aria-invalid", String(Number.isNaN(value)));
    if (value !== null && !Number.isNaN(value)) limits[key] = value;
  }
  return hits.filter((hit) =>
    words.every((word) => hit.words.includes(word)) &&
    (limits.evalue === undefined || (hit.evalue !== null && hit.evalue <= limits.evalue)) &&
    (limits.identity === undefined || hit.identity >= limits.identity) &&
    (limits.coverage === undefined || hit.coverage >= limits.coverage));
}

const TSV_COLUMNS = ["qaccver", "saccver", "pident", "length", "mismatch", "gapopen", "qstart", "qend", "sstart", "send",
  "evalue", "bitscore", "score", "qcovs", "stitle"];

/** The hits as a table of BLAST's columns, a line an alignment, with a line of names. */
function tsvOf(data, hits) {
  const lines = [[...TSV_COLUMNS, ...(data.program ? ["frames"] : [])].join("\t")];
  for (const hit of hits) {
    for (const hsp of hit.hsps) {
      const m = measure(hsp);
      lines.push([data.id, hit.id, m.identity.toFixed(3), m.length, m.length - hsp.identities - m.gaps, m.openings,
        ...m.query, ...m.subject, evalueText(hsp.evalue), hsp.bits === null ? "nan" : hsp.bits > 99.9 ? bitsText(hsp.bits) : bitsText(hsp.bits).padStart(4),
        hsp.score, hit.coverage, hit.titles[0], ...(data.program ? [hsp.frames.join("/")] : [])].join("\t"));
    }
  }
  return lines.join("\n") + "\n";
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
      const kinds = [column.text ? "number" : "", column.text && !column.small ? "small-out" : ""].join(" ").trim();
      return make("th", { scope: "col", class: kinds || null }, button);
    });
    head.append(...this.heads);
    this.pattern = this.patternRow();
    this.body = make("tbody");
    this.more = make("div", { class: "more" });
    this.table = make("table", {}, make("caption", { text: "Choose a heading to sort, a row to see its alignment." }),
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
    this.down = column.key === this.key ? !this.down : column.down;
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

  fill() {
    const rows = [];
    for (const hit of this.shown.slice(0, this.most)) {
      rows.push(this.rowOf(hit));
      if (this.open.has(hit)) rows.push(this.detailOf(hit));
    }
    this.body.replaceChildren(...rows);
    this.more.replaceChildren();
    const left = this.shown.length - this.most;
    if (left <= 0) return;
    const button = make("button", { type: "button", text: `Show ${Math.min(left, PAGE)} more of ${left.toLocaleString("en")}` });
    button.addEventListener("click", () => { this.most += PAGE; this.fill(); });
    this.more.append(button);
  }

  /** A row without its hit, to be copied: half the time of making each anew. */
  patternRow() {
    const row = make("tr", {}, make("td", { class: "tick" }, make("input", { type: "checkbox" })));
    for (const column of this.columns) {
      row.append(column.text ? make("td", { class: column.small ? "number" : "number small-out" }) : make("th", { scope: "row" },
        make("button", { type: "button", class: "open-hit", "aria-expanded": "false" }, make("span", { "aria-hidden": "true" })),
        make("span", { class: "title" })));
    }
    return row;
  }

  rowOf(hit) {
    if (this.rows.has(hit)) return this.rows.get(hit);
    const row = this.pattern.cloneNode(true), box = row.firstChild.firstChild, name = shorten(hit.id);
    box.setAttribute("aria-label", `Tick ${name}`);
    box.checked = this.ticked.has(hit);
    this.columns.forEach((column, place) => {
      const cell = row.childNodes[place + 1];
      if (column.text) { cell.textContent = column.text(hit); return; }
      const [button, title] = cell.childNodes, link = linkTo(hit.id);
      button.firstChild.className = `chip class-${this.classes.of(hit)}`;
      button.append(name);
      if (link) title.before(" ", link);
      title.textContent = shorten(describe(hit)) + (hit.hsps.length > 1 ? ` (${hit.hsps.length} alignments)` : "");
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

  /** Show a hit's alignment wherever its row is. */
  jumpTo(hit) {
    const place = this.shown.indexOf(hit);
    if (place >= this.most) { this.most = place + 1; this.fill(); }
    this.toggle(hit, true);
    const row = this.rowOf(hit);
    row.scrollIntoView({ block: "start" });
    row.querySelector(".open-hit").focus({ preventScroll: true });
  }

  /** Draw open alignments anew, in as many columns as there is room for. */
  redraw(printing = false) {
    this.printing = printing;
    if (this.open.size) this.fill();
  }
}
