"""Print the sequences of a database as FASTA, with h5py alone: a reader by docs/reference/database-file.md.

Run: python examples/read_with_h5py.py sprot.h5
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import h5py


def fasta(path: str) -> Iterator[str]:
    with h5py.File(path) as file:
        attributes = file.attrs
        if attributes["format"] != b"swsearch database" or attributes["format_version"] != 4:
            raise ValueError(f"{path}: expected a swsearch database of format 4")
        is_dna, lanes = "genetic_code" in attributes, int(attributes["lanes"])
        letters = attributes["dna_letters" if is_dna else "letters"].decode()
        for number in range(len(file["segments"])):
            segment = file[f"segments/{number}"]
            headers, runs = segment["header_offsets"][:], segment["mask_offsets"][:]
            lengths = segment["record_lengths" if is_dna else "lengths"][:]
            columns, ranks = (None, None) if is_dna else (segment["block_offsets"][:], segment["order"][:].argsort())
            end = 0
            for place in range(len(lengths)):  # in the order of the input
                if is_dna:  # two letters in a byte
                    start, end = end, end + int(lengths[place])
                    codes = [segment["nucleotides"][k // 2] >> 4 * (1 - k % 2) & 15 for k in range(start, end)]
                else:
                    rank = ranks[place]
                    column = columns[rank // lanes]
                    codes = segment["residues"][column : column + lengths[rank], rank % lanes]
                text = [letters[code] for code in codes]
                for run in range(runs[place], runs[place + 1]):  # lower case
                    first, last = segment["mask_starts"][run], segment["mask_ends"][run]
                    text[first:last] = "".join(text[first:last]).lower()
                header = segment["headers"][headers[place] : headers[place + 1]].tobytes()
                yield f">{header.decode(errors='replace')}\n{''.join(text)}\n"


if __name__ == "__main__":
    sys.stdout.writelines(fasta(sys.argv[1]))
