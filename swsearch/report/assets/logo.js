// logo.js: the letters of a profile, as high as what they say.

const LOGO_STEP = 16, LOGO_TOP = 6, LOGO_BOTTOM = 150, LOGO_HEIGHT = 186;
const LOGO_READABLE = 5;  // lower letters are blocks
const LOGO_CAP = 0.72;  // height of a capital letter, in font sizes
const LOGO_SPARE = 30;  // positions that are drawn on either side of those in view

/** The kind of a letter beside the query's, as in alignments: m same, p alike (scores above 0), x other. */
function logoKind(letter, own) {
  return letter === own.toUpperCase() ? "m" : (positive[own.toUpperCase()] || "").includes(letter) ? "p" : "x";
}

function logoLetter(letter, kind, x, top, height) {
  const wide = LOGO_STEP - 1, size = 18;
  const scale = round(height / (LOGO_CAP * size));
  const block = draw("rect", { class: kind, x, y: round(top), width: wide, height: round(height) });
  return height < LOGO_READABLE ? [block] : [
    block,
    draw("text", { class: "logo-letter", "text-anchor": "middle", textLength: wide - 3, lengthAdjust: "spacingAndGlyphs",
      transform: `translate(${x + wide / 2} ${round(top + height)}) scale(1 ${scale})`, text: letter }),
  ];
}

function logoPosition(data, place, most) {
  const [letters, bits] = data.profile.logo[place];
  const x = place * LOGO_STEP, own = data.sequence[place];
  const said = Array.from(letters, (letter, k) => `${letter} ${bits[k].toFixed(2)}`).join(", ") || "nothing";
  const group = draw("g", {}, draw("title", { text: `${own}${place + 1}: ${said} bits` }));
  const unit = (LOGO_BOTTOM - LOGO_TOP) / most;
  let top = LOGO_BOTTOM - unit * bits.reduce((sum, each) => sum + each, 0);
  Array.from(letters).forEach((letter, k) => {
    const height = Math.max(bits[k] * unit, 1);
    group.append(...logoLetter(letter, logoKind(letter, own), x, top, height));
    top += height;
  });
  group.append(draw("text", { class: "logo-own", x: x + LOGO_STEP / 2, y: LOGO_BOTTOM + 15, "text-anchor": "middle", text: own }));
  if (place === 0 || (place + 1) % 10 === 0) {
    group.append(draw("text", { x: x + LOGO_STEP / 2, y: LOGO_BOTTOM + 31, "text-anchor": place ? "middle" : "start",
      text: (place + 1).toLocaleString("en") }));
  }
  return group;
}

/** A figure of the whole profile that scrolls; only what is in view is drawn. */
function logoFigure(data) {
  const { logo, source } = data.profile;
  const most = Math.max(0.5, ...logo.map(([, bits]) => bits.reduce((sum, each) => sum + each, 0)));
  const width = logo.length * LOGO_STEP;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${LOGO_HEIGHT}`, width, height: LOGO_HEIGHT, role: "img",
    "aria-label": `Logo of the profile: the letters of ${logo.length} positions, as high as their information, ` +
      `at most ${most.toFixed(1)} bits.` });
  const letters = draw("g");
  svg.append(draw("line", { class: "axis", x1: 0, x2: width, y1: LOGO_BOTTOM + 1, y2: LOGO_BOTTOM + 1 }), letters);
  const view = make("div", { class: "wide logo", tabindex: 0, role: "region", "aria-label": "Logo of the profile" }, svg);
  let drawn = "";
  const update = () => {
    const shown = view.clientWidth || 1500;
    const first = Math.max(0, Math.floor(view.scrollLeft / LOGO_STEP) - LOGO_SPARE);
    const last = Math.min(logo.length, Math.ceil((view.scrollLeft + shown) / LOGO_STEP) + LOGO_SPARE);
    if (drawn === `${first} ${last}`) return;
    drawn = `${first} ${last}`;
    const groups = [];
    for (let place = first; place < last; place++) groups.push(logoPosition(data, place, most));
    letters.replaceChildren(...groups);
  };
  view.addEventListener("scroll", update);
  new ResizeObserver(update).observe(view);
  const items = [["m", "the query's letter"], ["p", "alike (scores above 0)"], ["x", "other"]];
  const figure = make("figure", {}, legend(items, "Colours"), view,
    make("figcaption", { text: `What was searched with: ${source || "a profile"}. A position is as high as its ` +
      `information, at most ${most.toFixed(1)} bits; its letters share it by their frequencies. Below stands the query.` }));
  return make("details", { class: "whole" }, make("summary", { text: `The profile of ${plural(logo.length, "position", "positions")}` }), figure);
}
