"""Small search jobs for the GPU engine on fake devices, and the numbers of their hits."""

import swsearch
from swsearch.alphabet import PROTEIN
from swsearch.engines.gpu import memory


def letters_of(sequences):
    return [PROTEIN.decode(codes) for codes in sequences]


def results_of(group, database, engine, **options):
    found = swsearch.search(group, database, engine=engine, **options)
    return [[(hit.subject_index, hit.score, hit.bit_score, hit.evalue) for hit in result.hits] for result in found]


CHUNK = 3_500
"""Bytes of a block or two."""


class Small:
    """Plans with chunks of a few blocks, whatever the memory."""

    def __init__(self, monkeypatch, chunk_bytes, resident):
        real = memory.make_plan

        def make_plan(demand, budget):
            if not resident:  # what streams has no room for all
                demand = memory.Demand(**{**demand.__dict__, "residue_bytes": demand.residue_bytes + (1 << 30)})
            plan = real(demand, budget)
            assert plan.resident == resident
            return memory.MemoryPlan(**{**plan.__dict__, "chunk_bytes": chunk_bytes})

        monkeypatch.setattr("swsearch.engines.gpu.engine.make_plan", make_plan)


class Holding:
    """Plans with chunks of a few blocks, where no device holds more than so many bytes of residues for good."""

    def __init__(self, monkeypatch, chunk_bytes, most):
        real = memory.make_plan

        def make_plan(demand, budget):
            if demand.residue_bytes > most or not demand.may_stay:
                more = {"residue_bytes": demand.residue_bytes + (1 << 30), "may_stay": False}
                demand = memory.Demand(**{**demand.__dict__, **more})
            return memory.MemoryPlan(**{**real(demand, budget).__dict__, "chunk_bytes": chunk_bytes})

        monkeypatch.setattr("swsearch.engines.gpu.engine.make_plan", make_plan)
