// ticks.js: taking hits away, as FASTA and as tables.

const FASTA_LINE = 60;
const LONGEST_LIST = 2000;  // characters of an address; longer lists of hits are written as ranges
const LONGEST_NAME = 80;

/** A file's name from an identifier. */
function fileName(id, ending) {
  return id.replace(/[^A-Za-z0-9._-]+/g, "_").slice(0, LONGEST_NAME) + ending;
}

function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = make("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** Put text on the clipboard; tells whether it is there. Only pages of this machine or over TLS may ask for it. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make("textarea", { class: "unseen", "aria-hidden": "true" });
    area.value = text;
    const before = document.activeElement;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (before) before.focus({ preventScroll: true });
    return done;
  }
}

/** A title without the identifier that it begins with. */
function describe(hit) {
  const title = hit.titles[0];
  return title.startsWith(hit.id) ? title.slice(hit.id.length).trim() : title;
}

/** The aligned part of each subject, gaps left out, a record an alignment: what a report holds of subjects. */
function fastaOf(hits) {
  const records = [];
  for (const hit of hits) {
    for (const hsp of hit.hsps) {
      if (!hsp.subject) continue;
      const lines = [`>${hit.id}/${measure(hsp).subject.join("-")} ${describe(hit)}`.trimEnd()];
      for (let k = 0; k < hsp.subject.length; k += FASTA_LINE) lines.push(hsp.subject.slice(k, k + FASTA_LINE));
      records.push(lines.join("\n") + "\n");
    }
  }
  return records.join("");
}

/** The rows of these hits as they are shown, a column of titles last. */
function shownTable(columns, hits) {
  const lines = [[...columns.map((column) => column.name), "Title"].join("\t")];
  for (const hit of hits) {
    const cells = columns.map((column) => (column.plain ? column.plain(hit) : cellText(column, hit)));
    lines.push([...cells, describe(hit)].join("\t"));
  }
  return lines.join("\n") + "\n";
}

/** Ranks as a server takes them: 1,2,7, or 1-900,905 where there are many. */
function listOf(ranks) {
  const inOrder = ranks.slice().sort((a, b) => a - b), plain = inOrder.join(",");
  if (plain.length <= LONGEST_LIST) return plain;
  const runs = [];
  for (const rank of inOrder) {
    const run = runs[runs.length - 1];
    if (run && run[1] === rank - 1) run[1] = rank;
    else runs.push([rank, rank]);
  }
  return runs.map(([first, last]) => (first === last ? first : `${first}-${last}`)).join(",");
}

/** What can be done with the hits that are ticked. */
function takeAway(data, place, table, say) {
  const node = make("div", { class: "take", role: "group", "aria-label": "Hits that are ticked" });
  const count = make("span", { class: "ticked" });
  const button = (text, title, act) => {
    const made = make("button", { type: "button", text, title });
    made.addEventListener("click", act);
    return made;
  };
  const said = async (what, text) => say((await copy(text)) ? `Copied ${what}.` : "The browser does not let this page copy; download it.");
  const fasta = () => fastaOf(table.taken()), rows = () => shownTable(table.columns, table.taken());
  const parts = "the aligned part of each ticked subject, a record an alignment";
  const buttons = [
    button("Aligned parts as FASTA", `Download ${parts}`, () => download(fileName(data.id, "-ticked.fasta"), fasta(), "text/x-fasta")),
    button("Copy FASTA", `Copy ${parts}`, () => said("the aligned parts as FASTA", fasta())),
    button("Table", "Download the ticked rows with the columns shown, as TSV", () => download(fileName(data.id, "-ticked.tsv"), rows(), "text/tab-separated-values")),
    button("Copy table", "Copy the ticked rows with the columns shown", () => said("the rows", rows())),
  ];
  const whole = subjects ? make("a", { class: "button", text: "Whole subjects", title: "The ticked subjects from end to end, as FASTA" }) : null;
  const update = () => {
    const taken = table.taken(), hidden = taken.length - table.shown.filter((hit) => table.ticked.has(hit)).length;
    count.textContent = `${taken.length.toLocaleString("en")} ticked${hidden ? `, ${hidden.toLocaleString("en")} of them not shown` : ""}`;
    for (const each of buttons) each.disabled = !taken.length;
    if (whole && taken.length) whole.href = `${subjects}?query=${place + 1}&hits=${listOf(taken.map((hit) => hit.rank))}`;
    else if (whole) whole.removeAttribute("href");
  };
  node.append(count, ...buttons, ...(whole ? [whole] : []));
  return { node, update };
}
