// dots.js: the alignments of a hit that has several, query against subject.

/** Where an alignment runs, as the d of a path; a gap is a step along one axis. */
function dotsPath(hsp, x, y) {
  const [queryStep, subjectStep] = (hsp.frames || [0, 0]).map(stepOf);
  let q = beginOf(hsp.q, hsp.queryEnds), s = beginOf(hsp.s, hsp.subjectEnds), path = `M${x(q)} ${y(s)}`;
  for (const [n, operation] of runsOf(hsp.cigar)) {
    if ("MI".includes(operation)) q += n * queryStep;
    else if (operation !== "D") q += (operation === "F" ? n : -n) * Math.sign(queryStep);
    if ("MD".includes(operation)) s += n * subjectStep;
    path += `L${x(q)} ${y(s)}`;
  }
  return path;
}

/** A line an alignment, numbered as below it; both axes have one scale unless one sequence is far longer. */
function dotsFigure(hit, data, classes, width, open) {
  const ticksOf = (n, room) => {
    const step = niceStep(n, Math.max(2, room / 70)), ticks = [];
    for (let residue = step; residue <= n; residue += step) ticks.push(residue);
    return ticks;
  };
  const whole = Math.min(width - 24, 520), top = 10;
  const high = Math.max(140, Math.min(360, ((whole - 70) * hit.length) / Math.max(data.length, 1)));
  const rows = ticksOf(hit.length, high);
  const left = marginFor(rows), right = whole - 12, bottom = round(top + high), height = bottom + 42;
  const x = (residue) => round(left + ((right - left) * residue) / Math.max(data.length, 1));
  const y = (residue) => round(bottom - ((bottom - top) * residue) / Math.max(hit.length, 1));
  const said = `${hit.hsps.length} alignments, query against subject; their coordinates stand with them below.`;
  const svg = draw("svg", { class: "dots", viewBox: `0 0 ${whole} ${height}`, width: whole, role: "img", "aria-label": said });
  svg.append(draw("rect", { class: "frame", x: left, y: top, width: round(right - left), height: round(bottom - top) }));
  for (const residue of ticksOf(data.length, right - left)) {
    svg.append(draw("line", { class: "grid", x1: x(residue), x2: x(residue), y1: top, y2: bottom }));
    if (x(residue) + 4 * String(residue).length <= whole) {
      svg.append(draw("text", { x: x(residue), y: bottom + 15, "text-anchor": "middle", text: residue.toLocaleString("en") }));
    }
  }
  for (const residue of rows) {
    svg.append(draw("line", { class: "grid", x1: left, x2: right, y1: y(residue), y2: y(residue) }));
    svg.append(draw("text", { x: left - 5, y: y(residue) + 4, "text-anchor": "end", text: residue.toLocaleString("en") }));
  }
  svg.append(draw("text", { x: (left + right) / 2, y: height - 8, "text-anchor": "middle", text: `query (${data.queryUnit})` }));
  svg.append(draw("text", { transform: `translate(11 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle",
    text: `subject (${data.subjectUnit})` }));
  hit.hsps.forEach((hsp, place) => {
    const m = measure(hsp);
    const line = draw("g", { class: `dot-line ${classes.of(hsp)}` },
      draw("path", { class: "near", d: dotsPath(hsp, x, y) }), draw("path", { d: dotsPath(hsp, x, y) }),
      draw("title", { text: `Alignment ${place + 1}: query ${m.query.join("-")}, subject ${m.subject.join("-")}` }));
    line.addEventListener("click", () => open(place));
    svg.append(line);
  });
  return make("figure", { class: "dots-figure" }, svg,
    make("figcaption", { text: "The alignments, query against subject, coloured by score as above. Choose one to go to it." }));
}
