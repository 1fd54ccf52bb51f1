// pictures.js: where the hits lie along the query, and how the whole database scores.

const FEW_LANES = 40;  // drawn at first, so that the table below them is seen
const MOST_LANES = 500;
const MOST_LANES_OF_HIT = 8;
const SVG = "http://www.w3.org/2000/svg";

function draw(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "text") node.textContent = value;
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

function round(value) {
  return Math.round(value * 100) / 100;
}

/** A step of 1, 2 or 5 times a power of ten, so that about so many fit. */
function niceStep(range, n) {
  const power = 10 ** Math.floor(Math.log10(Math.max(range / n, 1)));
  for (const factor of [1, 2, 5, 10]) if (range / (factor * power) <= n) return factor * power;
  return 10 * power;
}

/** Room left of an axis for its title and the widest of these numbers, at 12 pixels a letter's height. */
function marginFor(values) {
  return 28 + Math.ceil(7.7 * Math.max(1, ...values.map((value) => value.toLocaleString("en").length)));
}

/** BLAST's five classes by bits, of five equal parts of scores where there are no bits; one of all that may be chance. */
function scoreClasses(hits) {
  const inBits = hits.some((hit) => hit.bits !== null);
  let limits = [40, 50, 80, 200];
  if (!inBits) {
    const high = hits.length ? hits[0].score : 0, low = hits.length ? hits[hits.length - 1].score : 0;  // best first
    limits = [1, 2, 3, 4].map((part) => Math.round(low + ((high - low) * part) / 5));
  }
  return {
    unit: inBits ? "bits" : "score",
    of: (each) => (isWeak(each) ? "weak" : `class-${1 + limits.filter((limit) => (inBits ? each.bits : each.score) >= limit).length}`),
    names: [`< ${limits[0]}`, ...[0, 1, 2].map((k) => `${limits[k]}${inBits ? "-" : " to "}${limits[k + 1]}`), `>= ${limits[3]}`],
  };
}

function legend(items, label) {
  const list = make("ul", { class: "legend", "aria-label": label });
  for (const [kind, text] of items) list.append(make("li", {}, make("i", { class: kind }), text));
  return list;
}

/** Alignments of a hit as bars, each with its lane: those that would touch lie below each other. */
function barsOf(hit, at) {
  const ends = [[]];  // of the bars in each lane
  const bars = hit.hsps.map((hsp, part) => {
    const [from, to] = measure(hsp).query.slice().sort((a, b) => a - b);
    const x = at(Math.max(from - 1, 0)), wide = Math.max(round(at(to) - x), 1.5);
    let lane = ends.findIndex((lane) => lane.every(([a, b]) => x > b + 1 || x + wide < a - 1));
    if (lane < 0) lane = Math.min(ends.length, MOST_LANES_OF_HIT - 1);
    (ends[lane] ??= []).push([x, x + wide]);
    return { hsp, part, from, to, x, wide, lane };
  });
  return { hit, bars, lanes: ends.length };
}

/** How many hits have so many lanes together; at least one. */
function fitting(hits, most) {
  let lanes = 0;
  const n = hits.findIndex((each) => (lanes += each.lanes) > most);
  return n < 0 ? hits.length : Math.max(n, 1);
}

/** Bars along the query, one an alignment, those of a hit on a ground of their own; the first hits, or all. */
function coverageFigure(data, hits, classes, width, folding, open) {
  const left = 4, right = width - 4, top = 38;
  const at = (residue) => round(left + ((right - left) * residue) / Math.max(data.length, 1));
  const drawn = hits.slice(0, MOST_LANES).map((hit) => barsOf(hit, at));
  const few = fitting(drawn, FEW_LANES), many = fitting(drawn, MOST_LANES), most = folding.isOpen ? many : few;
  const shown = drawn.slice(0, most), lanes = shown.reduce((sum, each) => sum + each.lanes, 0);
  const pitch = Math.max(4, Math.min(12, Math.floor(162 / Math.max(lanes, 1))));
  const height = top + pitch * Math.max(lanes, 1) + 6;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  const what = hits.length > most ? `the first ${most} of ${hits.length} hits shown` : `${hits.length} hits`;
  svg.setAttribute("aria-label", `Where ${what} lie along the query, coloured by score; the table says the same.`);
  svg.append(draw("rect", { class: "query", x: left, y: 0, width: right - left, height: 16 }));
  svg.append(draw("text", { class: "query-label", x: (left + right) / 2, y: 12, "text-anchor": "middle",
    text: `query, ${data.length.toLocaleString("en")} ${data.queryUnit}s` }));
  const step = niceStep(data.length, Math.max(2, width / 90));
  for (let residue = step; residue < data.length; residue += step) {
    svg.append(draw("line", { class: "grid", x1: at(residue), x2: at(residue), y1: 16, y2: height }));
    if (at(residue) < right - 24) {
      svg.append(draw("text", { x: at(residue), y: 30, "text-anchor": "middle", text: residue.toLocaleString("en") }));
    }
  }
  let y = top;
  for (const { hit, bars, lanes } of shown) {
    const row = draw("g", { class: "bar-row" });
    if (bars.length > 1) {
      const first = Math.min(...bars.map((bar) => bar.x)), last = Math.max(...bars.map((bar) => bar.x + bar.wide));
      row.append(draw("rect", { class: "join", x: first, y: y - 0.5, width: round(last - first), height: lanes * pitch }));
    }
    for (const { hsp, part, from, to, x, wide, lane } of bars) {
      const kind = classes.of(hsp), high = kind === "weak" ? Math.max(1.5, (pitch - 1) / 3) : pitch - 1;
      const bar = draw("rect", { class: `bar ${kind}`, x, y: round(y + lane * pitch + (pitch - 1 - high) / 2), width: wide, height: round(high) });
      const said = [`${hit.id}${bars.length > 1 ? `, alignment ${part + 1} of ${bars.length}` : ""}: query ${from}-${to}`,
        hsp.bits === null ? `score ${hsp.score}` : `${bitsText(hsp.bits)} bits`, hsp.evalue !== null && `E-value ${evalueText(hsp.evalue)}`];
      bar.append(draw("title", { text: said.filter(Boolean).join(", ") }));
      bar.addEventListener("click", () => open(hit, part));
      row.append(bar);
    }
    svg.append(row);
    y += lanes * pitch;
  }
  const more = hits.length > most ? ` The first ${most} of the ${hits.length.toLocaleString("en")} shown.` : "";
  return make("figure", {},
    make("h3", { text: "Coverage of the query" }),
    legend([...classes.names.map((name, k) => [`class-${k + 1}`, k === 4 ? `${name} ${classes.unit}` : name]),
      ...(data.hits.some(isWeak) ? [["weak", `E-value above ${significant}: may be chance`]] : [])], "Colours"),
    svg,
    make("figcaption", { text: `A bar an alignment of the hits in the table, in its order.${more} Choose one to see it.` }),
    ...(hits.length > few ? [foldButton(few, many, hits.length, folding)] : []));
}

function foldButton(few, many, all, folding) {
  const text = folding.isOpen ? `Draw the first ${few}` : `Draw ${many === all ? "all" : "the first"} ${many}`;
  const button = make("button", { type: "button", class: "fold", text, "aria-expanded": String(folding.isOpen) });
  button.addEventListener("click", folding.turn);
  return button;
}

/**
 * A horizontal scale over all scores: equal steps up to where chance ends, then ever narrower ones, so that hits that
 * score 50 times as much leave room for the others.
 */
function scoreScale(found, left, right) {
  const low = found.first, end = found.end, highest = Math.max(found.highest + 1, end);
  if (highest - low <= 1.5 * (end - low)) {
    return { at: (score) => round(left + ((right - left) * (score - low)) / (highest - low)), bend: null, highest };
  }
  const bend = left + 0.62 * (right - left);
  const unit = (end - low) / 4, whole = Math.log1p((highest - end) / unit);
  const at = (score) => round(score <= end
    ? left + ((bend - left) * (score - low)) / (end - low)
    : bend + ((right - bend) * Math.log1p((score - end) / unit)) / whole);
  return { at, bend, highest };
}

function scoreTicks(found, scale, right) {
  const ticks = [];
  const add = (value) => {
    const x = scale.at(value + (found.width === 1 ? 0.5 : 0));  // the middle of the bar of one score
    const half = 4 * value.toLocaleString("en").length;
    if (x + half > right + 10) return;  // its number would be cut
    if (ticks.every((tick) => Math.abs(tick.x - x) >= tick.half + half + 6)) ticks.push({ value, x, half });
  };
  const step = niceStep(found.end - found.first, 5);
  for (let value = Math.ceil(found.first / step) * step; value <= found.end; value += step) add(value);
  if (scale.bend !== null) {
    for (let power = 1; power <= scale.highest; power *= 10) {
      for (const factor of [1, 2, 5]) {
        const value = factor * power;
        if (value > found.end && value <= scale.highest) add(value);
      }
    }
  }
  return ticks;
}

/** Hits by bin of the distribution. */
function hitCounts(found, hits) {
  const counts = new Map();
  for (const hit of hits) {
    if (hit.score < found.first) continue;
    const start = found.first + Math.floor((hit.score - found.first) / found.width) * found.width;
    counts.set(start, (counts.get(start) || 0) + 1);
  }
  return counts;
}

function wording(found, hits) {
  const n = (value) => value.toLocaleString("en");
  const expected = found.expected ? ", and how many are expected to score so by chance" : "";
  const below = found.below ? ` ${n(found.below)} that score less than ${n(found.first)} are not drawn.` : "";
  const unit = found.width > 1 ? ` Each bar counts ${found.width} units.` : "";
  return `The exact scores of all ${n(found.subjects)} subjects (${n(found.lowest)} to ${n(found.highest)}, median ` +
    `${n(found.median)})${expected}; ${n(hits.length)} are reported.${below}${unit}`;
}

/** Counts of scores on a logarithmic axis, the expected ones as a line, the reported hits marked. */
function distributionFigure(data, hits, width) {
  const found = data.distribution;
  const most = Math.max(...found.counts, ...(found.expected || [1]), 2), rows = [];
  for (let count = 1; count <= 1.3 * most; count *= 10) rows.push(count);
  const left = marginFor(rows), right = width - 10, top = 8, bottom = 158, height = 200, least = 0.5;
  const scale = scoreScale(found, left, right);
  const up = (count) => round(bottom - ((bottom - top) * Math.log(Math.max(count, least) / least)) / Math.log(1.3 * most / least));
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": wording(found, hits) });
  if (scale.bend !== null) {
    svg.append(draw("rect", { class: "beyond", x: scale.bend, y: top, width: right - scale.bend, height: bottom - top }));
    const room = right - scale.bend, said = room > 120 ? "compressed scale" : room > 90 ? "compressed" : "";
    const isOnLine = rows.some((count) => Math.abs(up(count) - top - 9) < 9);
    svg.append(draw("text", { x: scale.bend + 4, y: top + (isOnLine ? 28 : 13), text: said }));
  }
  for (const count of rows) {
    svg.append(draw("line", { class: "grid", x1: left, x2: right, y1: up(count), y2: up(count) }));
    svg.append(draw("text", { x: left - 5, y: up(count) + 4, "text-anchor": "end", text: count.toLocaleString("en") }));
  }
  const bar = (kind, start, count) => {
    const x = scale.at(start), wide = Math.max(scale.at(start + found.width) - x - 0.5, kind === "hits" ? 2 : 1);
    const said = `score ${start}${found.width > 1 ? ` to ${start + found.width - 1}` : ""}: ${count} ` +
      (kind === "hits" ? "reported" : "subjects");
    return draw("rect", { class: kind, x, y: up(count), width: round(wide), height: round(bottom - up(count)) },
      draw("title", { text: said }));
  };
  found.starts.forEach((start, place) => svg.append(bar("all", start, found.counts[place])));
  for (const [start, count] of hitCounts(found, hits)) svg.append(bar("hits", start, count));
  if (found.expected) {
    let path = "", drawing = false;
    found.expected.forEach((count, k) => {
      if (count >= least) path += `${drawing ? "L" : "M"}${scale.at(found.first + (k + 0.5) * found.width)} ${up(count)}`;
      drawing = count >= least;
    });
    svg.append(draw("path", { class: "expected", d: path }));
  }
  svg.append(draw("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
  for (const { value, x } of scoreTicks(found, scale, right)) {
    svg.append(draw("line", { class: "axis", x1: x, x2: x, y1: bottom, y2: bottom + 4 }));
    svg.append(draw("text", { x, y: bottom + 17, "text-anchor": "middle", text: value.toLocaleString("en") }));
  }
  svg.append(draw("text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle", text: "score (matrix units)" }));
  svg.append(draw("text", { transform: `translate(11 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle",
    text: "subjects (log scale)" }));
  const items = [["all", "all subjects"], ["hits", "reported hits"]];
  if (found.expected) items.push(["expected", "expected by chance"]);
  return make("figure", {},
    make("h3", { text: "Scores of the whole database" }), legend(items, "Colours"), svg,
    make("figcaption", { text: wording(found, hits) }), countsTable(found, hits));
}

/** The same numbers as a table, made when it is opened. */
function countsTable(found, hits) {
  const details = make("details", { class: "counts" }, make("summary", { text: "These numbers as a table" }));
  details.addEventListener("toggle", () => {
    if (details.children.length > 1) return;
    const body = make("tbody");
    const reported = hitCounts(found, hits);
    const counted = new Map(found.starts.map((start, place) => [start, found.counts[place]]));
    const starts = new Set([...(found.expected || []).map((_, k) => found.first + k * found.width), ...found.starts]);
    for (const start of Array.from(starts).sort((a, b) => a - b)) {
      const expected = found.expected && found.expected[(start - found.first) / found.width];
      const name = found.width > 1 ? `${start} to ${start + found.width - 1}` : String(start);
      const row = make("tr", {}, make("th", { scope: "row", text: name }));
      const texts = [counted.get(start) || 0, expected === undefined || expected === null ? "" : expected.toPrecision(3), reported.get(start) || 0];
      for (const text of texts) row.append(make("td", { class: "number", text: String(text) }));
      body.append(row);
    }
    const head = make("tr");
    for (const text of ["Score", "Subjects", "Expected by chance", "Reported"]) head.append(make("th", { scope: "col", class: text === "Score" ? null : "number", text }));
    details.append(make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Counts of scores" },
      make("table", {}, make("thead", {}, head), body)));
  });
  return details;
}
