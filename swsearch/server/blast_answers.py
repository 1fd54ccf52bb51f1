"""The pages of BLAST's URL API but for reports: small ones, whose marks the clients of NCBI's server look for.

Clients search these pages for ``RID =``, ``RTOE =`` and ``Status=``; so nothing that a request brought may hold them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Literal

SearchStatus = Literal["WAITING", "READY", "FAILED", "UNKNOWN"]

_MARKS = re.compile(r"(RID|RTOE|Status|ThereAreHits|QBlastInfo)(?=\s*=|Begin|End)", re.IGNORECASE)

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">{refresh}
<title>{title}</title>
</head>
<body>
{body}
</body>
</html>
"""


def told(text: str) -> str:
    """Return any text as markup that no client takes for a mark of ours; quotes stay, as clients print them."""
    return _MARKS.sub(lambda found: f"{found[0][0]}&#{ord(found[0][1])};{found[0][2:]}", escape(text, quote=False))


def info(*lines: str) -> str:
    """Return a block that clients read."""
    return "\n".join(["<!--QBlastInfoBegin", *lines, "QBlastInfoEnd", "-->"])


def submitted(rid: str, seconds: int, notes: Sequence[str]) -> str:
    """Return what a Put is answered with.

    Parameters
    ----------
    rid : str
        The job's identifier.
    seconds : int
        That the search is likely to take.
    notes : sequence of str
        What there is to be told.
    """
    items = "".join(f"<li>{told(note)}</li>\n" for note in notes)
    link = f'<a href="?CMD=Get&amp;RID={rid}">its report</a>'
    body = f"<p>The search was submitted: {link}.</p>\n" + (f"<ul>\n{items}</ul>\n" if notes else "")
    return _page("BLAST search", body + info(f"    RID = {rid}", f"    RTOE = {seconds}"))


def search_info(status: SearchStatus, has_hits: bool = False, problem: str = "") -> str:
    """Return what FORMAT_OBJECT=SearchInfo is answered with; the second block is there where the search is done."""
    blocks = [info(f"\tStatus={status}")]
    if status == "READY":
        blocks.append(info(f"\tThereAreHits={'yes' if has_hits else 'no'}"))
    said = f"<p>{told(problem)}</p>\n" if problem else ""
    return _page("BLAST search", said + "\n".join(blocks))


def waiting(progress: float) -> str:
    """Return what a report is answered with that is not ready: a page that browsers load again, and clients know."""
    body = f"<p>The search runs: {100 * progress:.0f} % are done.</p>\n{info(chr(9) + 'Status=WAITING')}"
    return _page("BLAST search", body, '\n<meta http-equiv="refresh" content="2">')


def refused(problem: str, status: SearchStatus | None = None) -> str:
    """Return the page of a request that cannot be done.

    It does not begin as a page that clients wait for, and has the sentence where they look for NCBI's.

    Parameters
    ----------
    problem : str
        What was wrong.
    status : str, optional
        Of the search, where the request is about one.
    """
    block = f"<p>{info(chr(9) + 'Status=' + status)}</p>\n" if status else ""
    return (
        '<html lang="en"><head><meta charset="utf-8"><title>BLAST search</title></head><body>\n'
        f'<ul id="msg" class="msg"><li class="error"><p class="error">{told(problem)}</p></li></ul>\n{block}'
        "</body></html>\n"
    )


def deleted(rid: str) -> str:
    """Return what a Delete is answered with."""
    return _page("BLAST search", f"<p>The search {told(rid)} and its results are deleted.</p>")


def described(databases: Sequence[str]) -> str:
    """Return what is there for somebody who asks for nothing."""
    names = "".join(f"<li>{told(name)}</li>\n" for name in databases)
    body = (
        "<p>This address answers programs that speak BLAST's URL API: CMD is Put, Get or Delete, PROGRAM is blastp "
        f"or blastx, and tblastn or tblastx of a DNA database.</p>\n<p>DATABASE is one of</p>\n<ul>\n{names}</ul>"
    )
    return _page("BLAST's URL API", body)


def _page(title: str, body: str, refresh: str = "") -> str:
    return _PAGE.format(title=title, refresh=refresh, body=body)
