"""DNA queries, databases of DNA and filters that leave most of a database out, on a GPU: the bytes of the CPU."""

import io
import json

import numpy as np
import pytest
from Bio.Data.CodonTable import standard_dna_table

import swsearch

pytestmark = pytest.mark.gpu

CODONS = dict(sorted((letter, codon) for codon, letter in standard_dna_table.forward_table.items()))
"""A codon for each amino acid."""

SEARCHES = [
    {},
    {"statistics": "published", "max_hits": 3},
    {"statistics": "none", "sort": "score", "max_hits": 20},
    {"evalue": 1e3, "min_query_coverage": 30.0},
]


@pytest.fixture(scope="module")
def proteins(examples):
    with swsearch.Database.from_fasta([examples / "data" / "swissprot_sample.fasta.gz"]) as made:
        yield made


@pytest.fixture(scope="module")
def genes(proteins):
    """Genes of some of the proteins on either strand of random DNA."""
    rng, found = np.random.default_rng(8), []
    places = range(0, proteins.n_subjects, proteins.n_subjects // 8)
    for k, place in enumerate(places):
        gene = "".join(CODONS.get(letter, "NNN") for letter in proteins.sequence(place))
        before, after = ("".join(rng.choice(list("ACGT"), n)) for n in rng.integers(0, 200, 2))
        dna = before + gene + after
        reverse = dna[::-1].translate(str.maketrans("ACGT", "TGCA"))
        found.append((f"gene{k}", reverse if k % 2 else dna))
    return found


def searched(queries, subjects, engine, **asked):
    """Return what is written, and the number of hits."""
    stream = io.StringIO()
    swsearch.write(swsearch.search(queries, subjects, engine=engine, **asked), stream, "jsonl")
    return stream.getvalue(), sum(len(json.loads(line)["hits"]) for line in stream.getvalue().splitlines())


@pytest.mark.parametrize("asked", [*SEARCHES, {"max_alignments": 3}, {"strand": "minus"}], ids=str)
def test_queries_of_dna(real_gpu, genes, proteins, asked):
    found, expected = (searched(genes, proteins, e, translate=True, **asked) for e in (real_gpu, "cpu"))
    assert found == expected
    assert found[1] > len(genes) // 2


@pytest.mark.parametrize("translate", [False, True])
@pytest.mark.parametrize("asked", SEARCHES, ids=str)
def test_a_database_of_dna(real_gpu, genes, proteins, asked, translate):
    queries = genes[:3] if translate else [("p", proteins.sequence(0)), ("r", proteins.sequence(9))]
    with swsearch.Database.from_records(genes, translate=True) as database:
        found, expected = (searched(queries, database, e, translate=translate, **asked) for e in (real_gpu, "cpu"))
    assert found == expected
    assert found[1]


@pytest.mark.parametrize("asked", SEARCHES, ids=str)
def test_a_tenth_of_a_database(real_gpu, proteins, asked):
    names = [proteins[k].identifier for k in range(0, proteins.n_subjects, 10)]
    queries = [("a", proteins.sequence(0)), ("b", proteins.sequence(30)), ("c", proteins.sequence(7))]
    found, expected = (searched(queries, proteins, e, include_ids=names, **asked) for e in (real_gpu, "cpu"))
    assert found == expected
    assert found[1]
