// lengths.js: how long the subjects of the hits are.

const LENGTH_BINS = 24;

/** Bounds of bins from the shortest to the longest: of one width, or of one ratio where the longest is many times the shortest. */
function lengthBounds(shortest, longest) {
  const low = Math.max(shortest, 1), high = Math.max(longest, low) + 1;
  if (high <= 8 * low) {
    const width = niceStep(high - low, LENGTH_BINS), bounds = [Math.floor(low / width) * width];
    while (bounds[bounds.length - 1] < high) bounds.push(bounds[bounds.length - 1] + width);
    return { bounds, isEven: true };
  }
  const ratio = (high / low) ** (1 / LENGTH_BINS), bounds = [low];
  for (let k = 1; k <= LENGTH_BINS; k++) bounds.push(Math.max(bounds[k - 1] + 1, Math.round(low * ratio ** k)));
  return { bounds, isEven: false };
}

function lengthTicks(first, last, isEven, room) {
  if (isEven) {
    const step = niceStep(last - first, Math.max(2, room / 60)), ticks = [];
    for (let value = Math.ceil(first / step) * step; value <= last; value += step) ticks.push(value);
    return ticks;
  }
  const ticks = [];
  for (let power = 1; power <= last; power *= 10) ticks.push(...[1, 2, 5].map((factor) => factor * power));
  return ticks.filter((value) => value >= first && value <= last);
}

/** Counts of the lengths of the hits that are shown; the query's is marked where it lies among them. */
function lengthsFigure(data, hits, width) {
  const heading = make("h3", { text: "Lengths of the subjects" });
  if (!hits.length) return make("figure", {}, heading, make("figcaption", { text: "No hits are shown." }));
  const lengths = hits.map((hit) => hit.length).sort((a, b) => a - b);
  const { bounds, isEven } = lengthBounds(lengths[0], lengths[lengths.length - 1]);
  const counts = new Array(bounds.length - 1).fill(0);
  let place = 0;
  for (const length of lengths) {
    while (place < counts.length - 1 && length >= bounds[place + 1]) place += 1;
    counts[place] += 1;
  }
  const most = Math.max(...counts), up = niceStep(most, 4), rows = [];
  for (let count = up; count <= most; count += up) rows.push(count);
  const left = marginFor(rows), right = width - 14, top = 8, bottom = 158, height = 200;
  const first = bounds[0], last = bounds[bounds.length - 1], scale = isEven ? (value) => value : Math.log;
  const x = (value) => round(left + ((right - left) * (scale(value) - scale(first))) / (scale(last) - scale(first)));
  const y = (count) => round(bottom - ((bottom - top) * count) / (1.05 * most));
  const n = (value) => value.toLocaleString("en"), middle = lengths[Math.floor((lengths.length - 1) / 2)];
  const said = `${plural(hits.length, "hit is", "hits are")} shown: ${n(lengths[0])} to ${n(lengths[lengths.length - 1])} ` +
    `${data.subjectUnit}s, median ${n(middle)}; the query has ${n(data.length)}` +
    `${data.queryUnit === data.subjectUnit ? "" : ` ${data.queryUnit}s`}.`;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said });
  for (const count of rows) {
    svg.append(draw("line", { class: "grid", x1: left, x2: right, y1: y(count), y2: y(count) }));
    svg.append(draw("text", { x: left - 5, y: y(count) + 4, "text-anchor": "end", text: n(count) }));
  }
  counts.forEach((count, bin) => {
    if (!count) return;
    const [from, to] = [bounds[bin], bounds[bin + 1]];
    svg.append(draw("rect", { class: "hits", x: x(from), y: y(count), width: Math.max(round(x(to) - x(from) - 0.5), 1),
      height: round(bottom - y(count)) }, draw("title", { text: `${n(from)} to ${n(to - 1)} ${data.subjectUnit}s: ${plural(count, "hit", "hits")}` })));
  });
  const isInside = data.queryUnit === data.subjectUnit && data.length >= first && data.length <= last;
  if (isInside) svg.append(draw("line", { class: "own-length", x1: x(data.length), x2: x(data.length), y1: top, y2: bottom }));
  svg.append(draw("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
  let taken = -Infinity;
  for (const value of lengthTicks(first, last, isEven, right - left)) {
    svg.append(draw("line", { class: "axis", x1: x(value), x2: x(value), y1: bottom, y2: bottom + 4 }));
    const half = 4 * n(value).length;
    if (x(value) - half < taken || x(value) + half > width) continue;
    taken = x(value) + half + 8;
    svg.append(draw("text", { x: x(value), y: bottom + 17, "text-anchor": "middle", text: n(value) }));
  }
  svg.append(draw("text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle",
    text: `subject's length (${data.subjectUnit}s${isEven ? "" : ", log scale"})` }));
  svg.append(draw("text", { transform: `translate(11 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle", text: "hits" }));
  const items = [["hits", "hits shown"], ...(isInside ? [["own-length", "the query's length"]] : [])];
  return make("figure", {}, heading, legend(items, "Colours"), svg,
    make("figcaption", { text: said }));
}
