// alignments.js: rows of an alignment from its CIGAR, cut into numbered blocks.

const MOST_LETTERS = 240;  // of a title in a row

/** Make an element: attributes by name ("text" is its text, "class" its class), then children. */
function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "text") node.textContent = value;
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

/** What of a text fits a row; the open hit has all of it. */
function shorten(text) {
  return text.length <= MOST_LETTERS ? text : `${text.slice(0, MOST_LETTERS).replace(/[\ud800-\udbff]$/, "")}\u2026`;
}

/** E-values as blastp's tables have them. */
function evalueText(value) {
  if (value === null) return "nan";
  if (value < 1e-180) return "0.0";
  if (value < 0.0009) return value.toExponential(2).replace(/e([+-])(\d)$/, "e$10$2");
  if (value < 0.1) return value.toFixed(3);
  if (value < 1) return value.toFixed(2);
  if (value < 10) return value.toFixed(1);
  return value.toFixed(0);
}

/** A number with one decimal, and no minus sign before 0.0. */
function oneDecimal(value) {
  return value.toFixed(1).replace(/^-0\.0$/, "0.0");
}

/** Bit scores as blastp has them: above 99.9 cut, not rounded. */
function bitsText(value) {
  if (value === null) return "nan";
  if (value > 99999) return value.toExponential(3).replace(/e([+-])(\d)$/, "e$10$2");
  return value > 99.9 ? String(Math.trunc(value)) : oneDecimal(value);
}

/** Runs of a CIGAR: [[12, "M"], [1, "D"], ...]; F and R shift the frame by a nucleotide, forward and back. */
function runsOf(cigar) {
  return Array.from(cigar.matchAll(/(\d+)([MIDFR])/g), (run) => [Number(run[1]), run[2]]);
}

/**
 * The three rows of an alignment and the kind of each column: m same, p alike (scores above 0), x other, g gap.
 * I consumes the query, D the subject; the subject's letters are the aligned ones alone. Lower case is masked: it is
 * the same letter, but scores above 0 with none.
 */
function rowsOf(hsp, sequence, positive) {
  const query = hsp.query || sequence;
  let q = hsp.q, s = 0, top = "", middle = "", bottom = "", kinds = "";
  for (const [n, operation] of runsOf(hsp.cigar)) {
    const a = operation === "D" ? "-".repeat(n) : query.slice(q, q + n);
    const b = "IFR".includes(operation) ? "-".repeat(n) : hsp.subject.slice(s, s + n);
    if (operation === "M") {
      for (let k = 0; k < n; k++) {
        const same = a[k].toUpperCase() === b[k].toUpperCase();
        const kind = same ? "m" : (positive[a[k]] || "").includes(b[k]) ? "p" : "x";
        kinds += kind;
        middle += kind === "m" ? a[k] : kind === "p" ? "+" : " ";
      }
    } else {
      kinds += "g".repeat(n);
      middle += " ".repeat(n);
    }
    top += a;
    bottom += b;
    if (operation !== "D") q += n;
    if ("MD".includes(operation)) s += n;
  }
  return { top, middle, bottom, kinds };
}

/** How numbers go on from a residue to the next: by 3 where it is read from DNA, down on the other strand. */
function stepOf(frame) {
  return frame ? 3 * Math.sign(frame) : 1;
}

/** Where a side's first residue begins, counted from 0 between nucleotides or residues, as numbers go on from there. */
function beginOf(start, ends) {
  if (!ends) return start;
  return ends[0] > ends[1] ? ends[0] : ends[0] - 1;
}

/** The parts of both sides that are aligned, 0-based and half-open, the lower end first. */
function rangesOf(hsp, m) {
  const range = (start, n, ends) => (ends ? [Math.min(...ends) - 1, Math.max(...ends)] : [start, start + n]);
  return { query: range(hsp.q, m.ofQuery, hsp.queryEnds), subject: range(hsp.s, m.ofSubject, hsp.subjectEnds) };
}

/** What tables say of an alignment; coordinates count from 1 and include the end, and descend on DNA's other strand. */
function measure(hsp) {
  let length = 0, gaps = 0, openings = 0, ofQuery = 0, ofSubject = 0;
  for (const [n, operation] of runsOf(hsp.cigar)) {
    length += n;
    if (operation !== "M") { gaps += n; openings += 1; }
    if ("MI".includes(operation)) ofQuery += n;
    if ("MD".includes(operation)) ofSubject += n;
  }
  const span = (start, n) => (n ? [start + 1, start + n] : [0, 0]);
  return {
    length, gaps, openings, ofQuery, ofSubject,
    query: hsp.queryEnds || span(hsp.q, ofQuery), subject: hsp.subjectEnds || span(hsp.s, ofSubject),
    identity: length ? (100 * hsp.identities) / length : 0,
  };
}

/** Append letters to a line, each run of one kind marked. */
function marked(line, letters, kinds) {
  for (let start = 0; start < letters.length; ) {
    let end = start + 1;
    while (end < letters.length && kinds[end] === kinds[start]) end += 1;
    const part = letters.slice(start, end);
    line.append(kinds[start] === "x" ? part : make("span", { class: kinds[start], text: part }));
    start = end;
  }
}

/** Digits of the largest number beside an alignment. */
function digitsOf(measured) {
  return String(Math.max(...measured.query, ...measured.subject)).length;
}

/** One alignment as text in blocks of so many columns, with coordinates at both sides. */
function alignmentBlocks(hsp, sequence, positive, columns) {
  const { top, middle, bottom, kinds } = rowsOf(hsp, sequence, positive);
  const measured = measure(hsp);
  const digits = digitsOf(measured), [queryFrame, subjectFrame] = hsp.frames || [0, 0];
  const pre = make("pre", { role: "group", tabindex: 0, "aria-label": "Alignment, query above subject" });
  let q = beginOf(hsp.q, hsp.queryEnds), s = beginOf(hsp.s, hsp.subjectEnds);
  const side = (block, name, letters, kindsHere, at, step) => {
    const count = (letter) => letters.split(letter).length - 1, late = count("\\"), early = count("/");
    const n = letters.length - count("-") - late - early, next = at + n * step + Math.sign(step) * (late - early);
    const first = at + ((next !== at) === (step > 0) ? 1 : 0), end = step > 0 ? next : next + 1;
    block.append(make("span", { class: "at", text: `${name} ${String(first).padStart(digits)} ` }));
    marked(block, letters, kindsHere);
    block.append(make("span", { class: "at", text: ` ${end}` }), "\n");
    return next;
  };
  for (let start = 0; start < top.length; start += columns) {
    const here = kinds.slice(start, start + columns);
    const block = make("div", { class: "block" });
    q = side(block, "Query", top.slice(start, start + columns), here, q, stepOf(queryFrame));
    block.append(" ".repeat(7 + digits) + middle.slice(start, start + columns) + "\n");
    s = side(block, "Sbjct", bottom.slice(start, start + columns), here, s, stepOf(subjectFrame));
    block.append("\n");
    pre.append(block);
  }
  return pre;
}

/** How many columns an alignment may have in so many pixels; 60, as everywhere, or fewer, or on wide screens 100. */
function columnsFor(width, digits) {
  const probe = make("pre", { text: "M".repeat(100) });
  probe.style.position = "absolute";
  probe.style.visibility = "hidden";
  probe.style.width = "max-content";
  document.body.append(probe);
  const letter = probe.getBoundingClientRect().width / 100;
  probe.remove();
  const room = Math.floor(width / letter) - 8 - 2 * digits;
  if (room >= 100) return 100;
  return room >= 60 ? 60 : Math.max(10, 10 * Math.floor(room / 10));
}

/** Frames in words: that of the query, that of the subject, or both. */
function framesText(frames) {
  const said = frames.filter((frame) => frame).map((frame) => (frame > 0 ? `+${frame}` : `${frame}`));
  return said.length ? `frame ${said.join("/")}` : null;
}

/** All that a hit's open row shows. */
function hitDetail(hit, data, positive, classes, width) {
  const box = make("div"), parts = [];
  for (const title of titlesOf(hit)) {
    const link = linkTo(title.split(" ", 1)[0]);
    box.append(make("p", {}, make("strong", { text: title }), ...(link ? [" ", link] : [])));
  }
  box.append(make("p", { class: "note", text: `${hit.length.toLocaleString("en")} ${data.subjectUnit}s` }));
  if (hit.hsps.length > 1) {
    box.append(dotsFigure(hit, data, classes, width, (place) => parts[place].scrollIntoView({ block: "start" })));
  }
  hit.hsps.forEach((hsp, place) => {
    const m = measure(hsp);
    const share = (n) => `${n}/${m.length} (${m.length ? Math.round((100 * n) / m.length) : 0} %)`;
    const words = [
      hsp.bits === null ? `Score ${hsp.score}` : `Score ${bitsText(hsp.bits)} bits (${hsp.score})`,
      hsp.evalue === null ? null : `E-value ${evalueText(hsp.evalue)}`,
      hsp.published === undefined ? null : `by published statistics ${evalueText(hsp.published)}`,
      `identities ${share(hsp.identities)}`, `positives ${share(hsp.positives)}`, `gaps ${share(m.gaps)}`,
      `query ${m.query.join("-")}`, `subject ${m.subject.join("-")}`, hsp.frames ? framesText(hsp.frames) : null,
    ];
    if (hit.hsps.length > 1) {
      parts.push(make("h3", { text: `Alignment ${place + 1} of ${hit.hsps.length}` }));
      box.append(parts[place]);
    }
    box.append(make("p", { text: words.filter(Boolean).join(", ") }));
    box.append(alignmentBlocks(hsp, data.sequence, positive, columnsFor(width, digitsOf(m))));
  });
  const key = make("ul", { class: "legend key", "aria-label": "Marks" });
  for (const [kind, text] of [["m", "identical"], ["p", "scores above 0"], ["g", "gap"]]) {
    key.append(make("li", {}, make("i", { class: kind, text: kind === "g" ? "-" : "A" }), text));
  }
  if (hit.hsps.some((hsp) => /[FR]/.test(hsp.cigar))) {
    const shifts = [["\\", "a nucleotide skipped"], ["/", "a nucleotide read twice"]];
    for (const [mark, text] of shifts) key.append(make("li", {}, make("i", { class: "g", text: mark }), text));
  }
  box.append(key);
  return box;
}
