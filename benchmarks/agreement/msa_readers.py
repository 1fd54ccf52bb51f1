"""Alignments of `swsearch msa`, read by other programs, and chains of complexes paired by genome.

Proteins drawn from Swiss-Prot are searched in it; hhmake, hmmbuild and readers written from the published rules of
predictors read the A3M. Subunits of complexes of E. coli, whose genes are neighbours, are paired in reading frames of
genomes, each a taxon. A pair is right if both rows stem from the same genome. *Neighbours* are at most 5,000
nucleotides apart, which no label says. *One gene* is a single frame that holds both subunits.

Needs: hmmer, hhsuite, biopython, Swiss-Prot with bare accessions, genomes such as ragout-examples has. Half an hour.
Run:   python -m benchmarks.agreement.msa_readers --queries sprot.fasta --database sprot.h5 --genomes A.fasta.gz ...
           [--first 200] [--seed 54] [--threads 2] [--work FOLDER] [--out benchmarks/results/msa_readers.txt]
"""

from __future__ import annotations

import random
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from Bio.Seq import Seq

from benchmarks.support import common
from benchmarks.support.common import Records

COMPLEXES = {
    "ATP synthase, alpha and beta": "P0ABB0 P0ABB4", "RNA polymerase, beta and beta'": "P0A8V2 P0A8T7",
    "succinyl-CoA synthetase": "P0A836 P0AGE9", "Phe-tRNA ligase": "P08312 P07395", "Trp synthase": "P0A877 P0A879",
    "carbamoyl-phosphate synthase": "P0A6F1 P00968", "GroEL, GroES": "P0A6F5 P0A6F9", "ClpX, ClpP": "P0A6H1 P0A6G7",
    "HslU, HslV": "P0A6H5 P0A7B8", "Gly-tRNA ligase": "P00960 P00961", "succinate dehydrogenase": "P0AC41 P07014",
    "RuvA, RuvB": "P0A809 P0A812", "isopropylmalate isomerase": "P0A6A6 P30126",
    "ribonucleotide reductase": "P00452 P69924", "cytochrome bd oxidase": "P0ABJ9 P0ABK2",
    "SufB, SufD": "P77522 P77689", "TatB, TatC": "P69425 P69423", "RecB, RecD": "P08394 P04993",
    "fumarate reductase": "P00363 P0AC47", "ribosomal stalk, L10 and L7/L12": "P0A7J3 P0A7K2",
}  # fmt: skip
"""Accessions of two subunits in E. coli, by complex."""
MIN_FRAME, MAX_APART = 60, 5000
"""Residues of a reading frame, and nucleotides between neighbours."""


def records_of(text: str) -> Records:
    """Return headers and rows of an A3M with a line for each, as readers of every second line need it."""
    lines = text.splitlines()
    heads, rows = lines[::2], lines[1::2]
    if len(heads) != len(rows) or not all(head.startswith(">") for head in heads):
        raise ValueError("a sequence is not on one line")
    return [(head[1:], row) for head, row in zip(heads, rows, strict=True)]


def columns_of(row: str) -> str:
    """Return a row without insertions."""
    return re.sub("[a-z]", "", row)


def read_as_alphafold(text: str, query: str) -> bool:
    """Read as AlphaFold 3 and Protenix: the first row is the query, all have its columns, and only letters and -."""
    rows = [row for _, row in records_of(text)]
    has_columns = {len(columns_of(row)) for row in rows} == {len(query)}
    return rows[0] == query and has_columns and all(re.fullmatch("[A-Za-z-]+", row) for row in rows)


def read_as_boltz(text: str, query: str) -> bool:
    """Read as Boltz: every second line; a row whose residues without gaps came before is dropped."""
    rows = [row for _, row in records_of("\n".join(line for line in text.splitlines() if line[:1] != "#"))]
    distinct = dict.fromkeys(row.replace("-", "").upper() for row in rows)
    return next(iter(distinct)) == query and len({len(columns_of(row)) for row in rows}) == 1


def read_as_colabfold(text: str, query: str) -> bool:
    """Read as ColabFold, Chai-1 and OpenFold3: rows of equal length without lower case, no two with equal columns."""
    rows = [columns_of(row) for _, row in records_of(text)]
    return rows[0] == query and len(set(rows)) == len(rows) and {len(row) for row in rows} == {len(query)}


def takes(*command: object) -> bool:
    """Return whether a program ends well."""
    return subprocess.run(list(map(str, command)), capture_output=True, check=False).returncode == 0


def count_readers(queries: Records, database: Path, threads: int, folder: Path) -> list[str]:
    """Count the files that each reader takes."""
    asked, out = common.write(folder / "queries.fasta", queries), folder / "a3m"
    words = ("--iterations", 1, "--checkpoint", folder / "kept", "--engine", "cpu", "--threads", threads)
    common.swsearch("msa", asked, database, "-o", out, *words)
    files = {name: out / f"{name}.a3m" for name, _ in queries}
    texts = {name: path.read_text() for name, path in files.items() if path.is_file()}
    hmm, hhm = folder / "x.hmm", folder / "x.hhm"
    rules: dict[str, Callable[[str, str], bool]] = {
        "AlphaFold 3, Protenix": read_as_alphafold, "Boltz": read_as_boltz,
        "ColabFold, Chai-1, OpenFold3": read_as_colabfold,
    }  # fmt: skip
    counts = {
        "hhmake -M a3m": sum(takes("hhmake", "-i", files[name], "-o", hhm, "-M", "a3m", "-v", 0) for name in texts),
        "hmmbuild --informat a2m": sum(
            takes("hmmbuild", "--amino", "--informat", "a2m", "-o", "/dev/null", hmm, files[name]) for name in texts
        ),
        **{f"rules of {key}": sum(rule(texts[name], seq) for name, seq in queries if name in texts)
           for key, rule in rules.items()},
    }  # fmt: skip
    depths = sorted(text.count(">") for text in texts.values())
    return [
        f"{len(queries)} proteins, {common.residues(queries):,} residues, one iteration in {database.name}",
        f"rows of an alignment: {depths[0]:,} to {depths[-1]:,}, median {depths[len(depths) // 2]:,}; "
        f"{depths.count(1)} of the query alone",
        "", *common.table(["reader", "files read", "of"], [[key, n, len(queries)] for key, n in counts.items()]),
    ]  # fmt: skip


def reading_frames(paths: Sequence[Path]) -> Records:
    """Return the frames between stops of genomes; a name holds file, sequence, place and the number of the file."""
    frames = []
    for taxon, path in enumerate(paths, 1):
        for k, (_, letters) in enumerate(common.read(path)):
            for strand, text in (("+", Seq(letters)), ("-", Seq(letters).reverse_complement())):
                for shift in range(3):
                    part = text[shift : len(text) - (len(text) - shift) % 3]
                    place = shift
                    for protein in str(part.translate(table=11)).split("*"):
                        first = place if strand == "+" else len(text) - place - 3 * len(protein)
                        if len(protein) >= MIN_FRAME:
                            frames.append((f"{path.stem.partition('.')[0]}|{k}|{strand}|{first} OX={taxon}", protein))
                        place += 3 * (len(protein) + 1)
    return frames


def pair_complexes(swissprot: Records, genomes: Sequence[Path], threads: int, folder: Path) -> list[str]:
    """Pair the subunits of each complex, and count pairs that are together."""
    sequences, rows = dict(swissprot), []
    frames = reading_frames(genomes)
    subjects = common.write(folder / "frames.fasta", frames)
    common.swsearch("db", "build", subjects, "-o", folder / "frames.h5")
    for place, (name, chains) in enumerate(COMPLEXES.items()):
        asked = common.write(folder / f"{place}.fasta", [(key, sequences[key]) for key in chains.split()])
        words = ("--pair", "complete", "--engine", "cpu", "--threads", threads)
        common.swsearch("msa", asked, folder / "frames.h5", "-o", folder / f"pairs{place}", *words)
        both = [records_of((folder / f"pairs{place}" / f"{key}.a3m").read_text())[1:] for key in chains.split()]
        pairs = [tuple(head.split("/")[0].split("|") for head, _ in pair) for pair in zip(*both, strict=True)]
        one_genome = [(a, b) for a, b in pairs if a[0] == b[0]]
        apart = [(a, b) for a, b in one_genome if a != b]
        near = [(a, b) for a, b in apart if a[1] == b[1] and abs(int(a[3]) - int(b[3])) <= MAX_APART]
        counts = len(pairs), len(one_genome), len(near), len(one_genome) - len(apart)
        rows.append([name, chains.replace(" ", ", "), *counts])
    heads = ["complex", "queries", "pairs", "same genome", "neighbours", "one gene"]
    total = [sum(int(row[k]) for row in rows) for k in (2, 3, 4, 5)]
    return [
        f"{len(genomes)} genomes, {len(frames):,} reading frames of {MIN_FRAME} residues or more",
        "", *common.table(heads, [*rows, ["all", "", *total]]),
    ]  # fmt: skip


def main() -> None:
    parser = common.arguments(__doc__)
    parser.set_defaults(first=200)
    parser.add_argument("--database", type=Path, required=True, help="the same proteins, made by swsearch db build")
    parser.add_argument("--genomes", type=Path, nargs="+", required=True, help="FASTA, a file for each")
    parser.add_argument("--seed", type=int, default=54, help="of the drawn proteins, default %(default)s")
    parser.add_argument("--threads", type=int, default=2, help="of swsearch, default %(default)s")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="for what is made; it stays there")
    options = parser.parse_args()
    common.need("hhmake", "hmmbuild")
    swissprot = common.read(options.queries)
    queries = random.Random(options.seed).sample(swissprot, options.first)
    lines = common.heading(__file__, ["biopython", "hhsearch", "jackhmmer"])
    with tempfile.TemporaryDirectory(prefix="swsearch-msa-") as name:
        folder = options.work or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        lines += pair_complexes(swissprot, options.genomes, options.threads, folder)
        lines += ["", *count_readers(queries, options.database, options.threads, folder)]
    common.finish(lines, options.out)


if __name__ == "__main__":
    main()
