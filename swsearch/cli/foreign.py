"""Options and commands of other programs, and what they are called here.

Of BLAST+, HMMER, HH-suite, DIAMOND, MMseqs2, ssearch36, CUDASW++ and EMBOSS. A name that is missing here is only
refused with less to say. docs/howto/coming-from-blastp.md has all options of blastp and psiblast.
"""

from __future__ import annotations

from collections.abc import Mapping

from swsearch.options.row import Option

SEARCH, MSA, ALIGN = "swsearch search", "swsearch msa", "swsearch align"
BUILD, APPEND, FETCH, INFO = "swsearch db build", "swsearch db append", "swsearch db fetch", "swsearch db info"

_ENTREZ = "there is no Entrez; --taxids takes taxids, --include-ids a file of identifiers"
_TAXA = "--taxids or --exclude-taxids, of a database that was built with taxa"
_BUILD_TAXA = "swsearch db build reads the taxonomy, and the database keeps it"
_HEURISTIC = "leave it out, because swsearch scores every subject exactly and uses no words"
_QUERIES = "the queries are the first argument: {} QUERIES SUBJECTS"
_SUBJECTS = "the database is the second argument: {} QUERIES SUBJECTS"
_SENSITIVE = "every subject is scored exactly; --preset sensitive has a matrix that finds more distant relatives"
_NO_MODEL_SCORES = "swsearch reads no thresholds of models; --evalue or --min-score sets one"
COMPOSITION_ADVICE = "E-values know the composition of both sequences; --statistics published has those that do not"
MASK_ADVICE = "use --query-mask tantan or --subject-mask tantan for low complexity, and lower for lower case"

_GPU = {
    "--engine gpu, with --device N for one of several GPUs, or --device 0,1 or --device all for several": "gpu gpus "
    "use-gpus num-gpus gpu-ids devices",
    "--engine cpu": "no-gpu",
}

_PROFILES = {
    "--inclusion-evalue decides by E-value what enters a profile": "incT incdomT",
    "--gap-open and --gap-extend take costs, such as 11 and 1, not probabilities": "popen pextend",
    "--query-format names the format of the queries": "qformat",
    "swsearch recognizes databases and FASTA files by their content": "tformat",
    "the first sequence of an alignment is the query; move another one there": "ignore-msa-master",
    "swsearch searches with no patterns": "phi-pattern",
    _HEURISTIC: "fast faster iterate xdrop k-mer-per-seq spaced-kmer-mode ungapped-score min-ungapped-score seed-cut "
    "algo prefilter-mode max-accept max-rejected",
}

_TABLES: dict[str, dict[str, str]] = {
    SEARCH: {
        **_GPU,
        **_PROFILES,
        _QUERIES.format(SEARCH): "in input query-file i",
        _SUBJECTS.format(SEARCH): "database subjects target targets d",
        "the N best hits are --max-hits N; a share of the best score, as DIAMOND has it, is not there": "top",
        "--min-identity takes a percentage, 30 for 0.3": "min-seq-id",
        "--min-query-coverage and --min-subject-coverage take a percentage, 80 for 0.8": "cov cov-mode c",
        "--min-score for raw scores; bit scores follow from these": "min-bit-score bit-score domT",
        "ssearch36's -T is --threads N; HMMER's is --min-score N, which takes a raw score": "T",
        _NO_MODEL_SCORES: "cut-ga cut-nc cut-tc",
        "--dbsize takes the number of residues of the database": "searchsp Z domZ",
        "-o FILE.sto writes the hits below the query, as Stockholm": "A",
        "--save-msa FOLDER writes the alignment of each profile": "chkali oa3m",
        "--save-profile FILE.asn writes the PSSM of the last iteration": "out-pssm save-each-pssm",
        "--save-profile FILE.pssm writes the PSSM of the last iteration as ASCII": "out-ascii-pssm",
        "--save-profile FILE.hmm writes the profile of the last iteration": "chkhmm",
        "--save-profile FILE.hhm writes the profile of the last iteration": "ohhm",
        "-o FILE.tsv writes a table; --outfmt '6 qseqid evalue' chooses its columns": "tblout domtblout pfamtblout",
        "-o FILE.tsv writes a table, without alignments": "noali",
        "--outfmt '6 qacc sacc evalue' has accessions": "acc",
        "--outfmt html": "html",
        _TAXA: "taxonlist taxon-list taxon-exclude organism",
        _BUILD_TAXA: "taxonmap taxonnodes taxonnames",
        _ENTREZ: "entrez-query gilist negative-gilist ipglist negative-ipglist taxon-k",
        COMPOSITION_ADVICE: "composition",
        MASK_ADVICE: "mask-prob db-hard-mask hardmask",
        "use --query-mask lower, and --subject-mask lower for the subjects": "lcase-masking mask-lower-case",
        _SENSITIVE: "sensitive s very-sensitive ultra-sensitive more-sensitive mid-sensitive sensitivity",
        "swsearch has no such filter; filter the table": "culling-limit best-hit-overhang best-hit-score-edge",
        "alignments have gaps; --gap-open 1000 makes them rare": "ungapped",
        "lines of --outfmt 0 have 60 residues; --outfmt 6 to 15 have no lines to set": "line-length line-width textw "
        "notextw",
        "--sort chooses between E-value and score; sort the table as you like": "sorthits sorthsps",
        "cut the sequence beforehand; coordinates then count from the cut": "subject-loc",
        "--genetic-code, beside --translate for DNA queries": "gencode",
        "a database keeps its genetic code: swsearch db build --translate --genetic-code N": "db-gencode",
        "--frame-shift, beside --translate for DNA queries": "frameshift",
        "name a database of a server of your own as SUBJECTS: http://host:8080/sprot": "remote",
        "databases hold proteins": "dbtype",
    },
    MSA: {
        **_GPU,
        **_PROFILES,
        "--iterations": "n",
        _QUERIES.format(MSA): "in input query-file i",
        _SUBJECTS.format(MSA): "database subjects target targets d",
        "--min-coverage takes a percentage of the query": "cov qcov",
        "--min-identity takes a percentage": "qid id",
        "swsearch msa writes alignments; swsearch search writes profiles": "out-pssm out-ascii-pssm save-each-pssm "
        "chkhmm ohhm",
    },
    ALIGN: {
        **_GPU,
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
        "FASTA files are arguments: swsearch db build INPUT... --output DB.h5": "input i",
        "messages go to stderr": "logfile",
        "swsearch knows no GIs": "gi-mask gi-mask-name",
        "leave it out; swsearch db info shows the files that a database was made from": "title",
        "masks come as lower case, with --mask lower, or are made, with --mask tantan": "mask-data mask-id mask-desc "
        "masking seg",
        "--taxids FILE, with accession and taxid on each line": "taxid taxonmap",
        "--taxonomy FOLDER, with nodes.dmp and names.dmp": "taxonnodes taxonnames",
    },
    APPEND: {"FASTA files are arguments: swsearch db append DB.h5 INPUT...": "input i"},
    FETCH: {
        "the database is the first argument: swsearch db fetch DB.h5 ID...": "db d database",
        "identifiers are arguments: swsearch db fetch DB.h5 ID..., and --all is all entries": "entry id seq",
        "entries are written as FASTA, as they went in": "line-length strand mask-sequence-with",
        "messages go to stderr": "logfile",
        "swsearch db info DB.h5 shows what a database holds": "info exact-length list list-outfmt recursive "
        "remove-redundant-dbs show-blastdb-search-path",
        "swsearch search finds entries of taxa; here they are fetched by their names": "taxids taxidlist",
        "there are no identical protein groups": "ipg ipg-batch",
        "swsearch db info counts taxa": "tax-info",
    },
    INFO: {"the database is the argument: swsearch db info DB.h5": "db d database"},
}
"""By command: what to say, and the names it is said of; an option of ours stands for itself."""

_COMMANDS = {
    "swsearch": {
        "swsearch search": "blastp phmmer diamond mmseqs easy-search ssearch36 ssearch fasta36 blast find query",
        "swsearch search --iterations 3": "psiblast deltablast phiblast blastpgp jackhmmer",
        "swsearch search --translate": "blastx fastx36 fasty36",
        "swsearch search --mode global": "ggsearch36 ggsearch",
        "swsearch search --mode semiglobal": "glsearch36 glsearch",
        "swsearch msa": "hhblits colabfold-search",
        "swsearch align": "needle needleall stretcher pairwise",
        "swsearch align --mode local": "water matcher lalign36",
        "swsearch db build": "makeblastdb formatdb makedb createdb build index database",
        "swsearch db info": "info dbinfo",
        "swsearch db fetch": "blastdbcmd fastacmd esl-sfetch getseq fetch get",
        "swsearch db append": "append",
        "swsearch db remove": "remove delete",
        "swsearch db merge": "merge concatdbs mergedbs blastdb-aliastool",
        "swsearch db split": "splitdb split volumes",
        "swsearch db verify": "verify blastdbcheck check",
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

_PROGRAMS = {
    "swsearch searches proteins, and swsearch align --alphabet dna aligns DNA": "blastn megablast dc-megablast "
    "nhmmer nhmmscan fastn lastal minimap2 blat bwa vsearch usearch",
    "swsearch search does this with a database from swsearch db build --translate": "tblastn tfastx36 tfasty36",
    "swsearch search --translate does this with a database from swsearch db build --translate": "tblastx",
    "swsearch search takes a model as QUERIES: swsearch search MODEL.hmm SUBJECTS": "hmmsearch",
    "profiles are the QUERIES of swsearch search, and proteins are the SUBJECTS": "hmmscan hmmpress rpsblast "
    "rpstblastn makeprofiledb hhsearch",
    "swsearch search makes a profile from an alignment: swsearch search ALIGNMENT SUBJECTS": "hmmbuild hhmake",
    "swsearch masks low complexity itself: swsearch search --query-mask tantan": "segmasker dustmasker windowmasker",
}
"""What to say of programs that no single command replaces, and their names."""


def plain(name: str) -> str:
    """Return a name without what programs write differently: dashes before it, underscores, and case of words."""
    bare = name.lstrip("-").replace("_", "-")
    return bare.lower() if len(bare) > 1 else bare


def advice_of(path: str, rows: Mapping[str, Option]) -> dict[str, str]:
    """Return what each option of other programs is in a command: an option of ours, or a sentence."""
    own = {row.key for row in rows.values()}
    ours = {name: row.flag for row in rows.values() for name in map(plain, row.others.split()) if name not in own}
    sentences = {plain(name): text for text, names in _TABLES.get(path, {}).items() for name in names.split()}
    return dict.fromkeys(("version", "V"), "swsearch --version shows it") | ours | sentences


def command(path: str, name: str) -> str:
    """Return the command of ours that another's is; empty if there is none."""
    return next((ours for ours, theirs in _COMMANDS.get(path, {}).items() if plain(name) in theirs.split()), "")


def program(name: str) -> str:
    """Return what to say of another program that no single command replaces; empty if there is nothing."""
    return next((text for text, theirs in _PROGRAMS.items() if plain(name) in theirs.split()), "")
