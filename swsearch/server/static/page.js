// page.js: what the pages can do beyond what they can without a script: drop files, count, watch, copy.
"use strict";
(() => {
  /** Text that is pasted beyond this many characters becomes a file, with which a text field would be slow. */
  const LARGE = 1 << 20;
  /** Characters of a file that are looked at for hints. */
  const LOOKED_AT = 1 << 20;

  const one = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const n = (number) => number.toLocaleString("en");
  const counted = (number, word) => `${n(number)} ${number === 1 ? word : `${word}s`}`;

  const labelled = (field) => `"${one(`#${field}`).labels[0].textContent.trim()}"`;

  /** Whether a line has words as sentences have, not blocks of equal length with a shorter one at the end. */
  function isProse(line) {
    const words = line.replace(/\d/g, "").split(/\s+/).filter(Boolean);
    return new Set(words.slice(0, -1).map((word) => word.length)).size > 1 && /[ou]/.test(line);
  }

  /** Whether the server takes letters for DNA. */
  function seemsDna(letters) {
    const number = (set) => letters.replace(new RegExp(`[^${set}]`, "gi"), "").length;
    return !/[^ACGTURYSWKMBDHVNX]/i.test(letters) && ["A", "C", "G", "TU"].every(number)
      && number("ACGTU") >= Math.max(20, 9 * number("RYSWKMBDHV"));
  }

  /** Records and residues of FASTA, and what may be wrong with it. */
  function lookedAt(text) {
    const isDna = one("#translate").checked;
    // without the lines around a sequence in flat files of GenBank and UniProt
    const trimmed = text.trim().replace(/^(ORIGIN|SQ {3}).*\n|\n\/\/$/g, "").trim();
    if (!trimmed) return { words: "", doubt: false };
    if (/^(#|CLUSTAL|HMMER|HMM |PSSM|Last position|PssmWithParameters|HHsearch|[{])/.test(trimmed)) {
      return { words: "Recognized as an alignment or a profile.", doubt: false };
    }
    let records = 0, residues = 0, letters = "";
    for (const line of trimmed.split(/\r\n|\r|\n/)) {
      if (line.startsWith(">")) records += 1;
      else if (!line.startsWith(";")) {
        const found = line.replace(/[\s\d]+/g, "");
        residues += found.length;
        if (letters.length < 10000) letters += found;
      }
    }
    const isPlain = !records;
    if (isPlain) records = 1;
    const words = `${counted(records, "sequence")}, ${counted(residues, isDna ? "nucleotide" : "residue")}.`;
    if (/^(?:[A-Z]{1,3}_?\d{4,}(?:\.\d+)?|[OPQ]\d[A-Z\d]{3}\d|[A-NR-Z]\d[A-Z\d]{3}\d)(?:[\s,;]+|$)/i.test(trimmed)) {
      return { words: "This looks like an accession. Paste the sequence itself.", doubt: true, records, residues };
    }
    if (!residues) return { words: `${words} Paste the sequences as well.`, doubt: true, records, residues };
    const strange = letters.replace(/[A-Za-z*\-.]/g, "");
    if (strange) {
      return { words: `${words} ${JSON.stringify(strange[0])} is no residue: is this FASTA?`, doubt: true, records, residues };
    }
    if (seemsDna(letters) && !isDna && !one("#allow_dna").checked) {
      const words = `This looks like DNA. Tick ${labelled("translate")} for a translated search, or tick ${labelled("allow_dna")}.`;
      return { words, doubt: true, isDna: true, records, residues };
    }
    if (isDna && /[EFIJLOPQZ]/i.test(letters)) {
      return { words: `${words} This looks like protein. Untick ${labelled("translate")}.`, doubt: true, records, residues };
    }
    if (isPlain && trimmed.split("\n").some(isProse)) {
      return { words: "This looks like text. Is it a sequence?", doubt: true, records, residues };
    }
    if (isPlain && /[^\s\d][ \t]*\n[ \t]*\n\s*[^\s\d]/.test(trimmed)) {
      return { words: "For several sequences, put a line such as >name above each.", doubt: true, records, residues };
    }
    return { words, doubt: false, records, residues };
  }

  function form() {
    const search = one("#search");
    if (!search) return;
    const queries = one("#queries"), file = one("#file"), drop = one(".drop"), away = one("#no-file");
    const count = one("#queries-count"), go = one("#go");
    const costs = JSON.parse(one("#gap-costs").textContent);

    let wasDna = false;
    const say = ({ words, doubt, isDna = false }) => {
      if (count.textContent !== words) count.textContent = words;
      count.classList.toggle("doubt", doubt);
      if (isDna && !wasDna) one("#translate").closest("details").open = true;
      wasDna = isDna;
    };
    const tooLong = (found) => {
      const most = Number(search.dataset.residues);
      if (!(found.residues > most)) return found;
      return { ...found, words: `${found.words} The maximum is ${n(most)} residues.`, doubt: true };
    };
    const peptide = (found) => {
      const isShort = !found.doubt && !one("#translate").checked && found.residues && found.residues <= 30 * found.records;
      if (!isShort || one("#preset").value === "short" || one("#matrix").value) return found;
      return { ...found, words: `${found.words} For peptides, choose "peptides" among the options.` };
    };
    async function look() {
      const chosen = file.files[0];
      away.hidden = !chosen;
      if (!chosen) return say(peptide(tooLong(lookedAt(queries.value))));
      const size = `${chosen.name}, ${n(Math.ceil(chosen.size / 1024))} kB`;
      if (chosen.size > Number(search.dataset.body)) {
        return say({ words: `${size}: too large, the maximum is ${n(Number(search.dataset.body))} bytes.`, doubt: true });
      }
      if (queries.value.trim()) {
        return say({ words: `${size}: remove the file or the text above; only one of them can be searched.`, doubt: true });
      }
      if (await isGzip(chosen)) return say({ words: `${size}, compressed.`, doubt: false });
      const text = await chosen.slice(0, LOOKED_AT).text();
      if (file.files[0] !== chosen) return undefined;
      const found = lookedAt(text);
      if (chosen.size <= LOOKED_AT) return say({ ...found, words: `${size}: ${found.words}` });
      return say({ words: found.doubt ? `${size}: ${found.words}` : `${size}.`, doubt: found.doubt });
    }
    let later = 0;
    const soon = () => {
      clearTimeout(later);
      later = setTimeout(look, queries.value.length > 100000 ? 600 : 120);
    };
    const isGzip = async (given) => String(new Uint8Array(await given.slice(0, 2).arrayBuffer())) === "31,139";
    const take = (given) => {
      const moved = new DataTransfer();
      moved.items.add(given);
      file.files = moved.files;
      look();
    };

    queries.addEventListener("input", soon);
    for (const field of ["#translate", "#allow_dna"]) one(field).addEventListener("change", look);
    file.addEventListener("change", look);
    away.addEventListener("click", () => {
      file.value = "";
      look();
      file.focus();
    });
    queries.addEventListener("paste", (event) => {
      const text = event.clipboardData.getData("text/plain");
      if (text.length <= LARGE || queries.value.trim()) return;
      event.preventDefault();
      take(new File([text], "pasted.fasta", { type: "text/plain" }));
    });
    for (const kind of ["dragenter", "dragover"]) {
      search.addEventListener(kind, (event) => {
        if (!event.dataTransfer.types.includes("Files")) return;
        event.preventDefault();
        drop.classList.add("over");
      });
    }
    search.addEventListener("dragleave", (event) => {
      if (!search.contains(event.relatedTarget)) drop.classList.remove("over");
    });
    search.addEventListener("drop", async (event) => {
      const given = event.dataTransfer.files[0];
      if (!given) return;
      event.preventDefault();
      drop.classList.remove("over");
      if (given.size > LARGE || await isGzip(given)) return take(given);
      queries.value = await given.text();
      file.value = "";
      const title = one("#title");
      if (!title.value) title.value = given.name.slice(0, title.maxLength);
      return look();
    });

    const preset = one("#preset"), matrix = one("#matrix");
    const showCosts = () => {
      const found = costs.matrices[matrix.value] || costs.presets[preset.value || "default"];
      one("#gap_open").placeholder = found[0];
      one("#gap_extend").placeholder = found[1];
      soon();
    };
    preset.addEventListener("change", showCosts);
    matrix.addEventListener("change", showCosts);
    showCosts();
    look();

    for (const link of all("[data-fasta]")) {
      link.addEventListener("click", async (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        try {
          const answer = await fetch(link.dataset.fasta);
          if (!answer.ok) throw new Error(answer.statusText);
          queries.value = await answer.text();
        } catch {
          location.href = link.href;
          return;
        }
        file.value = "";
        preset.value = link.dataset.preset;
        showCosts();
        queries.focus();
      });
    }

    search.addEventListener("submit", (event) => {
      if (go.dataset.sent) {
        event.preventDefault();
        return;
      }
      go.dataset.sent = "yes";
      go.textContent = "Sending…";
    });
    // the way back shows the page as it was left
    window.addEventListener("pageshow", () => {
      delete go.dataset.sent;
      go.textContent = "Search";
      showCosts();
    });
  }

  /** Ask how a job is until it has ended, whatever happens to the server meanwhile. */
  function watch(place, changed) {
    const trouble = one("[data-trouble]");
    let pause = 300;
    const again = () => setTimeout(ask, document.hidden ? 5000 : pause);
    async function ask() {
      try {
        const answer = await fetch(place.dataset.state, { headers: { Accept: "application/json" }, cache: "no-store" });
        if (answer.status === 404 || answer.status === 410 || answer.status === 401) return location.reload();
        if (!answer.ok) throw new Error(answer.statusText);
        const found = await answer.json();
        if (trouble) trouble.textContent = "";
        if (changed(found)) return undefined;
        pause = Math.min(pause * 1.3, 3000);
      } catch {
        if (trouble) trouble.textContent = "The server does not respond. This page keeps trying.";
        pause = 3000;
      }
      return again();
    }
    again();
  }

  function jobs() {
    const alone = one("#watch");
    if (alone) {
      watch(alone, (found) => {
        if (found.is_ended) {
          location.reload();
          return true;
        }
        one("[data-words]").textContent = found.words;
        one("[data-elapsed]").textContent = found.elapsed;
        one("[data-bar]").value = found.percent;
        document.title = `${found.words} - swsearch`;
        return false;
      });
    }
    for (const row of all("tr[data-state]").slice(0, 20)) {
      watch(row, (found) => {
        one("[data-words]", row).textContent = found.words;
        if (found.is_ended) location.reload();
        return found.is_ended;
      });
    }
  }

  function copies() {
    for (const button of all("[data-copy]")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        const field = document.getElementById(button.dataset.copy);
        field.select();
        try {
          await navigator.clipboard.writeText(field.value);
        } catch {
          document.execCommand("copy"); // where the address is no https one, browsers have no clipboard
        }
        button.textContent = "Copied";
      });
    }
  }

  /** A link from elsewhere is opened without the cookie of who is logged in; asked from here it goes with it. */
  async function login() {
    const next = one(".login input[name=next]");
    const root = one(".brand").getAttribute("href");
    if (!next || one("#token-problem")) return;
    const answer = await fetch(`${root}jobs`, { redirect: "manual" }).catch(() => null);
    if (answer && answer.ok) location.replace(root + next.value.slice(1));
  }

  form();
  jobs();
  copies();
  login();
})();
