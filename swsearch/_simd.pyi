from swsearch.alphabet import ByteArray
from swsearch.native import Found, ScoreBytes

def align(
    query: ByteArray,
    subject: ByteArray,
    scores: ScoreBytes,
    max_score: int,
    gap_open: int,
    gap_extend: int,
    local: bool,
    free_ends: int,
    with_path: bool,
    memory: int,
    threads: int,
    tile: int,
    beam: int,
    instructions: str,
    /,
) -> Found | int: ...
def instruction_sets() -> list[tuple[str, bool]]: ...
