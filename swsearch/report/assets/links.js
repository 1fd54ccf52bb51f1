// links.js: where a subject is to be read about, if its identifier says itself whose it is.

const ACCESSION = "(?:[OPQ][0-9][A-Z0-9]{3}[0-9]|[A-NR-Z][0-9](?:[A-Z][A-Z0-9]{2}[0-9]){1,2})";  // UniProt's own pattern
const INSDC = "[A-Z]{3}[0-9]{5}(?:[0-9]{2})?(?:\\.[0-9]+)?";
const REFSEQ = "[ANWXY]P_[0-9]{6,9}(?:\\.[0-9]+)?";

/**
 * Whole identifiers, what of them is looked up, whose they are and under which address. Nothing is guessed: bare
 * accessions of GenBank or PDB look like many other names.
 */
const PLACES = [
  [`(?:sp|tr)\\|(${ACCESSION})(?:[-.][0-9]+)?\\|[^|]*`, "UniProt", "https://www.uniprot.org/uniprotkb/"],
  [`(${ACCESSION})(?:-[0-9]+)?`, "UniProt", "https://www.uniprot.org/uniprotkb/"],
  [`(UniRef(?:100|90|50)_(?:${ACCESSION}(?:-[0-9]+)?|UPI[0-9A-F]{10}))`, "UniRef", "https://www.uniprot.org/uniref/"],
  ["(UPI[0-9A-F]{10})", "UniParc", "https://www.uniprot.org/uniparc/"],
  [`(?:gi\\|[0-9]+\\|)?ref\\|(${REFSEQ})\\|?[^|]*`, "NCBI", "https://www.ncbi.nlm.nih.gov/protein/"],
  [`(?:gi\\|[0-9]+\\|)?(?:gb|emb|dbj)\\|(${INSDC})\\|?[^|]*`, "NCBI", "https://www.ncbi.nlm.nih.gov/protein/"],
  [`(${REFSEQ})`, "NCBI", "https://www.ncbi.nlm.nih.gov/protein/"],
  ["pdb\\|([0-9][A-Za-z0-9]{3})(?:\\|[A-Za-z0-9]*)?", "PDB", "https://www.rcsb.org/structure/"],
].map(([pattern, name, address]) => [new RegExp(`^${pattern}$`), name, address]);

const ENTRY = make("a", { class: "entry", target: "_blank", rel: "noopener noreferrer" });

/** A link to the entry that an identifier names; null where it does not say whose it is. */
function linkTo(id) {
  if (id.length > 100) return null;
  for (const [pattern, name, address] of PLACES) {
    const found = pattern.exec(id);
    if (!found) continue;
    const link = ENTRY.cloneNode();
    link.href = address + encodeURIComponent(found[1]);
    link.textContent = name;
    link.setAttribute("aria-label", `${found[1]} at ${name}`);
    return link;
  }
  return null;
}
