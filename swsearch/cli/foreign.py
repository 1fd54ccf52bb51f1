"""Options and commands of other programs, and what they are called here.

Of blastp, makeblastdb, blastdbcmd, DIAMOND, MMseqs2, ssearch36, CUDASW++ and EMBOSS. A name that is missing here is
only refused with less to say. docs/howto/coming-from-blastp.md has blastp's in full.
"""

from __future__ import annotations

from functools import cache

SEARCH, ALIGN, BENCH = "swsearch search", "swsearch align", "swsearch bench search"
BUILD, APPEND, FETCH, INFO = "swsearch db build", "swsearch db append", "swsearch db fetch", "swsearch db info"

_ENTREZ = "there is no Entrez; --taxids takes taxids, --include-ids a file of identifiers"
_TAXA = "--taxids or --exclude-taxids, of a database that was built with taxa"
_BUILD_TAXA = "swsearch db build reads the taxonomy, and the database keeps it"
_HEURISTIC = "it is not needed, because every subject is scored exactly and no words are looked for"
_QUERIES = "the queries are the first argument: swsearch search QUERIES SUBJECTS"
_SUBJECTS = "the database is the second argument: swsearch search QUERIES SUBJECTS"
_COMPOSITION = "E-values know the composition of both sequences; --statistics published has those that do not"
_SENSITIVE = "every subject is scored exactly; --preset sensitive has a matrix that finds more distant relatives"
_MASK = "low complexity is masked with --query-mask tantan and --subject-mask tantan, lower case with lower"

_SHARED = {
    "--output": "out outfile of result-file",
    "--threads": "num-threads nthreads thread cpu cpus jobs T p t j",
    "--gap-open": "gapopen gapo gop gap-open-cost gap-opening",
    "--gap-extend": "gapextend gape gex gapext gap-ext gap-extension gap-extend-cost",
    "--matrix": "mat sub-mat scoring-matrix score-matrix substitution-matrix datafile",
    "--outfmt": "format f m format-mode format-output aformat output-format",
    "--engine gpu, with --device N for one of several GPUs, or --device 0,1 or --device all for several": "gpu gpus "
    "use-gpus num-gpus gpu-ids devices",
    "--engine cpu": "no-gpu",
    "--quiet": "silent",
}

_TABLES: dict[str, dict[str, str]] = {
    SEARCH: {
        **_SHARED,
        _QUERIES: "in input query-file i",
        _SUBJECTS: "database subjects target targets d",
        "--evalue": "e E expect max-evalue e-value e-profile",
        "--max-hits": "num-alignments num-descriptions max-seqs topscore-num num-hits hits limit k b n",
        "the N best hits are --max-hits N; a share of the best score, as DIAMOND has it, is not there": "top",
        "--max-alignments": "hsps alt-ali",
        "--min-identity": "id identity perc-identity pident approx-id",
        "--min-query-coverage": "query-cover qcov query-coverage",
        "--min-identity takes a percentage, 30 for 0.3": "min-seq-id",
        "--min-query-coverage and --min-subject-coverage take a percentage, 80 for 0.8": "cov cov-mode c",
        "--min-subject-coverage": "subject-cover scov subject-coverage target-cover",
        "--min-score for raw scores; bit scores follow from these": "min-bit-score bit-score",
        "--include-ids": "seqid-list ids",
        "--dbsize": "db-size searchsp Z z",
        "--outfmt html": "html",
        _TAXA: "taxonlist taxon-list taxon-exclude organism",
        _BUILD_TAXA: "taxonmap taxonnodes taxonnames",
        _ENTREZ: "entrez-query gilist negative-gilist ipglist negative-ipglist taxon-k",
        _COMPOSITION: "comp-based-stats comp-bias-corr composition",
        _MASK: "seg masking mask soft-masking lcase-masking mask-lower-case mask-prob db-soft-mask db-hard-mask "
        "hardmask",
        _SENSITIVE: "sensitive s very-sensitive ultra-sensitive more-sensitive mid-sensitive sensitivity",
        _HEURISTIC: "word-size threshold window-size xdrop-ungap xdrop-gap xdrop-gap-final xdrop fast faster "
        "exhaustive iterate swipe exhaustive-search num-iterations k-mer-per-seq spaced-kmer-mode ungapped-score "
        "min-ungapped-score seed-cut algo index-chunks block-size culling-limit best-hit-overhang "
        "best-hit-score-edge use-sw-tback prefilter-mode subject-besthit max-accept max-rejected ungapped",
        "lines of --outfmt 0 have 60 residues; --outfmt 6 to 15 have no lines to set": "line-length line-width",
        "--sort chooses between E-value and score; sort the table as you like": "sorthits sorthsps",
        "cut the sequence beforehand; coordinates then count from the cut": "subject-loc",
        "--config": "import-search-strategy config-file",
        "--save-config": "export-search-strategy",
        "it is not needed; the documentation says why, for users of blastp": "show-gis parse-deflines mt-mode",
        "--genetic-code, beside --translate for DNA queries": "gencode",
        "--frame-shift, beside --translate for DNA queries": "frameshift",
        "everything runs on this machine": "remote",
        "databases hold proteins": "dbtype",
    },
    ALIGN: {
        **_SHARED,
        "the first argument, A, holds the queries: swsearch align A B": "query asequence a q i in input",
        "the second argument, B, holds the subjects: swsearch align A B": "subject bsequence b db d target",
        "--alphabet dna": "dna nucleotide snucleotide rna",
        "protein is what --alphabet is by default": "protein sprotein",
        "--mode local": "local",
        "--mode global": "global",
        "--mode semiglobal": "semiglobal glocal endfree",
        "ends are paid for with --mode global, and free with --mode semiglobal": "endweight endopen endextend",
        "--match and --mismatch": "reward penalty",
        "pairs have no E-values; swsearch search has": "evalue e E",
    },
    BUILD: {
        "--output": "out db d outfile database",
        "FASTA files are arguments: swsearch db build INPUT... --output DB.h5": "in input i",
        "databases hold proteins": "dbtype",
        "FASTA is what is read": "input-type",
        "messages go to stderr": "logfile",
        "it is not needed, because db fetch finds the identifiers and accessions of every header": "parse-seqids "
        "hash-index gi-mask gi-mask-name",
        "a database remembers its files and their checksums instead, which swsearch db info shows": "title",
        "masks come as lower case, with --mask lower, or are made, with --mask tantan": "mask-data mask-id mask-desc "
        "masking seg",
        "--volume-size": "max-file-sz",
        "a database has one format, and a file of a later one is refused": "blastdb-version",
        "--taxids FILE, with accession and taxid on each line": "taxid taxid-map taxonmap",
        "--taxonomy FOLDER, with nodes.dmp and names.dmp": "taxonnodes taxonnames",
    },
    APPEND: {"FASTA files are arguments: swsearch db append DB.h5 INPUT...": "in input i"},
    FETCH: {
        "--output": "out outfile",
        "the database is the first argument: swsearch db fetch DB.h5 ID...": "db d database",
        "identifiers are arguments: swsearch db fetch DB.h5 ID..., and --all is all entries": "entry id seq",
        "--ids": "entry-batch id-file list-file f",
        "entries are written as FASTA, as they went in": "outfmt line-length strand "
        "mask-sequence-with target-only get-dups ctrl-a long-seqids",
        "databases hold proteins": "dbtype",
        "messages go to stderr": "logfile",
        "swsearch db info DB.h5 shows what a database holds": "info exact-length list list-outfmt recursive "
        "remove-redundant-dbs show-blastdb-search-path",
        "swsearch search finds entries of taxa; here they are fetched by their names": "taxids taxidlist",
        "there are no identical protein groups": "ipg ipg-batch",
        "swsearch db info counts taxa": "tax-info",
    },
    INFO: {"the database is the argument: swsearch db info DB.h5": "db d database"},
    BENCH: {"--threads": _SHARED["--threads"], "--top": "max-hits max-target-seqs k"},
}
"""By command: what to say, and the names it is said of; an option of ours stands for itself."""

_COMMANDS = {
    "swsearch": {
        "swsearch search": "blastp easy-search ssearch36 ssearch blast find query",
        "swsearch align": "needle water pairwise",
        "swsearch db build": "makeblastdb makedb createdb build index database",
        "swsearch db info": "info dbinfo",
        "swsearch db fetch": "blastdbcmd getseq fetch get",
        "swsearch db append": "append",
        "swsearch db remove": "remove delete",
        "swsearch db merge": "merge concatdbs mergedbs blastdb-aliastool",
        "swsearch db split": "splitdb split volumes",
        "swsearch db verify": "verify check",
        "swsearch --help": "help",
        "swsearch --version": "version",
    },
    "swsearch db": {
        "swsearch db build": "make create makedb createdb makeblastdb new",
        "swsearch db append": "add update",
        "swsearch db remove": "delete rm drop exclude",
        "swsearch db merge": "join concat combine concatdbs mergedbs aliastool",
        "swsearch db split": "splitdb volumes cut",
        "swsearch db fetch": "get extract getseq show",
        "swsearch db verify": "check test",
        "swsearch db info": "stats list describe",
        "swsearch db --help": "help",
    },
}
"""By group: a command of ours, and what others call it."""


def plain(name: str) -> str:
    """Return a name without what programs write differently: dashes before it, underscores, and case of words."""
    bare = name.lstrip("-").replace("_", "-")
    return bare.lower() if len(bare) > 1 else bare


@cache
def _advice(path: str) -> dict[str, str]:
    return {name: text for text, names in _TABLES.get(path, {}).items() for name in names.split()}


def names(path: str) -> set[str]:
    """Return the names of options of other programs that a command knows of, without dashes."""
    return set(_advice(path))


def advice(path: str, name: str) -> str:
    """Return what to say of an option: the one of ours that it is, or a sentence; empty if there is nothing."""
    return _advice(path).get(name, "swsearch --version shows it" if name in ("version", "V") else "")


def command(path: str, name: str) -> str:
    """Return the command of ours that another's is; empty if there is none."""
    return next((ours for ours, theirs in _COMMANDS.get(path, {}).items() if name in theirs.split()), "")
