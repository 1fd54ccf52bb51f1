"""Requests that a server must stand: each is made from a seed, for one route, hostile in one way or in several."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote, urlencode

from faults.data import LETTERS
from faults.fasta import make

JSON_TYPE, FORM_TYPE, PARTS_TYPE = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"

MARK = "zq9"
"""Stands where a request tries to bring markup or a header into an answer."""


Framing = Literal["whole", "short", "wrong"]
"""Whether a request is one of HTTP, lacks its end, or is none."""

READ, ASKED, SENT = ("GET", "HEAD"), ("GET",), ("POST",)
ROUTES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(
        ("/", "/about", "/examples/{key}", "/static/{digest}/{name}", "/jobs", "/jobs/{identifier}"), READ
    ),
    **{f"/jobs/{{identifier}}/{each}": READ for each in ("state", "details", "summary", "report", "text")},
    "/jobs/{identifier}/report/{first}/subjects": READ,
    "/login": (*READ, *SENT),
    **dict.fromkeys(("/logout", "/clear", "/search", "/jobs/{identifier}/cancel", "/jobs/{identifier}/delete"), SENT),
    **dict.fromkeys(("/api", "/metrics"), ASKED),
    **dict.fromkeys(("/Blast.cgi", "/blast/Blast.cgi"), (*ASKED, *SENT)),
    **dict.fromkeys(("/ticket/{ticket}", "/ticket/type/{ticket}", "/result/download/{ticket}", "/queue"), ASKED),
    **dict.fromkeys(("/ticket/msa", "/ticket/pair", "/tickets"), SENT),
    **{f"/api/v1/{each}": READ for each in ("openapi.json", "health", "ready")},
    **{f"/api/v1/{each}": ASKED for each in ("databases", "databases/{name}", "formats")},
    "/api/v1/jobs": (*ASKED, *SENT),
    "/api/v1/jobs/{identifier}": (*ASKED, "DELETE"),
    **{
        f"/api/v1/jobs/{{identifier}}/{each}": ASKED
        for each in ("results", "queries", "subjects", "outputs/{number}")
    },
    **dict.fromkeys(("/api/v1/jobs/{identifier}/cancel", "/api/v1/search"), SENT),
}
"""Every path of the server with its methods; a test holds them against the application's."""

ENDPOINTS = tuple((method, path) for path, methods in ROUTES.items() for method in methods if method != "HEAD")
"""Methods and paths by which cases are counted."""

METHODS = (
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "PROPFIND", "X" * 90,
)  # fmt: skip
TEXTS = (
    "", " ", "0", "-1", "1e400", "NaN", "Infinity", "-Infinity", "1" * 400, "9" * 18, "9223372036854775808",
    "1e-999", "true", "null", "[]", "{}", "\0", "\r\nX-Zq9: 1", f"<{MARK}>", f"\"'><{MARK} onload=1>",
    "../../../etc/passwd", "..\\..\\x", "/etc/passwd", "file:///etc/passwd", "%00", "%s%n", "{{7*7}}", "${7*7}",
    "';--", "\u202e\x1b[31m", "\ud800", "\N{FULLWIDTH DIGIT ONE}", "é" * 50, "x" * 5000, "1,2,3", "1-5", "5-1",
    "1-999999999", "0x10", "1_000", "\u0661", "+1", " 1 ", "1.0", "QBlastInfoBegin\n\tStatus=READY\nQBlastInfoEnd",
    "all", "*", ".", "-",
)  # fmt: skip
"""Values of any parameter."""

OPTIONS: Mapping[str, Sequence[Any]] = {
    "preset": ("sensitive", "default", "x"),
    "matrix": ("BLOSUM62", "PAM30", "blosum62", "/etc/passwd", {"name": "m", "text": "A R\nA 1 2\nR 2 1\n"}, {}),
    "gap_open": (0, 1, 11, 32767, -1, 2**31, 2**63, 10**30),
    "gap_extend": (0, 1, 2, 32767, -1, 2**31),
    "min_score": (0, 1, -1, 10**9, 10**19),
    "max_hits": (1, 0, 10, 5000, 5001, 10**12),
    "evalue": (10.0, 0, -1, 1e-300, 1e308, "inf"),
    "sort": ("score", "evalue", "x"),
    "mode": ("local", "global", "semiglobal", "x"),
    "statistics": ("none", "published", "auto", "x"),
    "max_alignments": (1, 3, 0, 10**9),
    "query_mask": ("none", "lower", "tantan", "x"),
    "subject_mask": ("none", "lower", "tantan", "x"),
    "allow_dna": (True, False, "yes"),
    "iterations": (1, 2, 3, 0, 100),
    "distribution": (True, False),
    "keep_profiles": (True, False),
    "include_ids": ([], ["alpha"], ["x"] * 50, [1], "alpha"),
    "exclude_ids": ([], ["alpha"], ["\0"]),
    "min_identity": (0, 50.5, 101, -1),
    "min_query_coverage": (0, 50, 1e9),
    "inclusion_evalue": (0.001, 0, -1),
    "max_included": (1, 0, 10**9),
    "inclusion": ({}, {"columns": 1}, {"x": 1}, []),
    "dbsize": (1, 0, 10**18, 2**80),
}
"""Options of searches with values, some of them usable."""

OUTPUTS = ("json", "6 qseqid", "html", "sam", "a3m", "profile json", "profile hhm", "msa a3m", "msa stockholm")
"""Formats of files that jobs write."""

PARAMETERS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "results": {"format": ("json", "html", "6", "5", "sam", "0", "x", "7 qseqid"),
                "columns": ("qseqid,sseqid", "std", "x", "qseqid " * 200), "queries": ("1", "1-2", "2-1", "0", "9")},
    "subjects": {"query": ("1", "0", "2", "x"), "hits": ("1", "1,2", "1-3", "1-5000", "0", "1-999999999")},
    "report": {"queries": ("1", "1-2", "51-100", "0", "x")},
    "text": {"queries": ("1", "51-100", "0", "x")},
    "summary": {"queries": ("1", "1-50", "x"), "page": ("1", "2", "0")},
    "jobs": {"state": ("done", "queued,running", "x"), "limit": ("1", "1000", "0"), "page": ("1", "99999")},
    "login": {"next": ("/", "//evil.org", "/\\evil.org", "https://evil.org", "/jobs?x=1", "/%0d%0aX-Zq9:1")},
    "": {"database": ("tiny", "x"), "example": ("insulin", "x"), "from": ("ID", "x"),
         "wait": ("0", "0.01", "61", "nan")},
    "msa": {"q": ("FASTA",), "mode": ("env", "all", "env-nofilter", "-", "x"), "database[]": ("tiny", "two", "x")},
    "tickets": {"tickets[]": ("A" * 38, "x")},
    "Blast.cgi": {
        "CMD": ("Put", "Get", "Delete", "put", "x"), "QUERY": ("FASTA",), "DATABASE": ("tiny", "two", "nr"),
        "PROGRAM": ("blastp", "blastn"), "RID": ("ID",), "FORMAT_TYPE": ("XML", "JSON2", "Text", "HTML", "XML2", "x"),
        "FORMAT_OBJECT": ("Alignment", "SearchInfo", "x"), "HITLIST_SIZE": ("1", "50", "100000"),
        "EXPECT": ("10", "1e-5", "x"), "MATRIX": ("BLOSUM62", "PAM30", "x"), "GAPCOSTS": ("11 1", "1", "x y"),
        "FILTER": ("F", "L", "mL"), "COMPOSITION_BASED_STATISTICS": ("0", "2"), "ALIGNMENT_VIEW": ("Tabular", "x"),
    },
}  # fmt: skip
"""Parameters by the last part of a path, with values; those of all others are options of a search."""

HEADERS: Mapping[str, Sequence[str]] = {
    "Host": ("evil.org", "localhost", "127.0.0.1:1", "", "a b", "[::1]", "[", "localhost:99999999", "x" * 300, "%00"),
    "Cookie": ("swsearch=" + "a" * 32, "swsearch=../../x", "swsearch-token=x", "a" * 3000, "swsearch=\"\\0\"; =; ;;",
               "swsearch=<zq9>", "\xe9=\xff", "swsearch=" + "a" * 32 + "; swsearch=" + "b" * 32),
    "X-Forwarded-For": ("1.2.3.4", "1.2.3.4, " * 100, "x", "unix:", "127.0.0.1\t"),
    "X-Forwarded-Proto": ("https", "javascript"),
    "X-Forwarded-Host": ("evil.org",),
    "Forwarded": ("for=1.2.3.4;host=evil.org",),
    "Range": ("bytes=0-1", "bytes=-1", "bytes=" + "0-1," * 300, "bytes=5-1", "x"),
    "If-None-Match": ("*", '"x"'),
    "If-Modified-Since": ("yesterday", "Thu, 01 Jan 1970 00:00:00 GMT"),
    "Accept": ("text/html", "*/*", "x" * 500, "text/html;q=NaN"),
    "Accept-Encoding": ("gzip", "br", "identity;q=0"),
    "Authorization": ("Bearer x", "Basic Og==", "Bearer", "Bearer " + "x" * 2000, "\xff"),
    "Origin": ("http://evil.org", "null", "http://127.0.0.1", "http://[", "x" * 300),
    "Sec-Fetch-Site": ("cross-site", "same-origin", "none", "x"),
    "Sec-Fetch-Mode": ("navigate", "no-cors"),
    "Content-Type": (JSON_TYPE, FORM_TYPE, f"{PARTS_TYPE}; boundary=b", PARTS_TYPE, "text/plain; charset=utf-16",
                     "x" * 300, f"{PARTS_TYPE}; boundary=" + "b" * 300, f"{PARTS_TYPE}; boundary=\xe9",
                     "text/x-fasta", f"{FORM_TYPE}; charset=utf-7", f"{JSON_TYPE}; charset=nonsense"),
    "Content-Encoding": ("gzip", "br", "identity", "gzip, gzip", "x"),
    "Transfer-Encoding": ("gzip", "identity", "x"),
    "Expect": ("100-continue", "x"),
    "Upgrade": ("websocket", "h2c"),
    "Connection": ("close", "keep-alive", "upgrade", "x"),
    "X-Http-Method-Override": ("DELETE",),
    "X-Long": ("x" * 20_000, "\xff\xfe"),
}  # fmt: skip
"""Headers with hostile values, as Latin-1."""

PATHS = (
    "/..", "/../..", "/%2e%2e/%2e%2e/etc/passwd", "/%00", "//", "///x", "/.", "/%2f", "/%5c..", "/;x", "/%c0%ae",
    "/" + "a" * 3000, "/%0d%0aX-Zq9:%201", f"/<{MARK}>", "/%", "/%zz", "/%ff%fe", "/\xe9", "?", "#x", "/*", "/~root",
)  # fmt: skip
"""Hostile texts for insertion into a path."""


@dataclass(frozen=True)
class Known:
    """Names that requests may contain: identifiers of jobs, the server's port, and a file of its pages."""

    identifiers: Sequence[str]
    port: int
    static: str = "/static/x/page.css"


@dataclass
class HostileRequest:
    """A request.

    Parameters
    ----------
    endpoint : (str, str)
        Method and path of `ENDPOINTS` that it is meant for.
    method, target : str
        What is sent as such; text is Latin-1.
    headers : list of (str, str)
        Beside Host and those of the body.
    body : bytes
        What is sent.
    framing : str
        See `Framing`.
    raw : bytes
        All that is sent, once it is made.
    """

    endpoint: tuple[str, str]
    method: str
    target: str
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    framing: Framing = "whole"
    raw: bytes = b""


def request_of(endpoint: tuple[str, str], seed: int, known: Known) -> HostileRequest:
    """Make a request for an endpoint; the same seed makes the same one."""
    draw = random.Random(f"{seed} {endpoint}")
    method, path = endpoint
    made = HostileRequest(endpoint, method, _path(draw, path, known))
    pairs = _pairs(draw, path, known)
    if method == "POST":
        _add_body(draw, made, pairs)
    elif pairs:
        made.target += f"?{_query(draw, pairs)}"
    for spoil, share in ((_spoil_path, 0.12), (_spoil_headers, 0.2), (_spoil_method, 0.05)):
        if draw.random() < share:
            spoil(draw, made)
    made.raw = _raw(draw, made, known)
    if draw.random() < 0.06:
        _spoil_framing(draw, made)
    return made


def _path(draw: random.Random, path: str, known: Known) -> str:
    values = {
        "identifier": lambda: draw.choice([*known.identifiers] * 5 + ["A" * 20, "../x", "x", quote(_text(draw))]),
        "name": lambda: draw.choice(["tiny", "two", "page.css", "x", quote(_text(draw))]),
        "digest": lambda: draw.choice(["x", quote(_text(draw))]),
        "first": lambda: draw.choice(["1", "2", "0", "-1", "x", "9" * 30]),
        "number": lambda: draw.choice(["0", "1", "-1", "99", "x", quote(_text(draw))]),
        "ticket": lambda: draw.choice(["A" * 38, "a_-" * 12 + "zz", "msa", "x", quote(_text(draw))]),
        "key": lambda: draw.choice(["insulin", "globins", "x", quote(_text(draw))]),
    }
    if path.startswith("/static") and draw.random() < 0.3:
        return known.static
    for name, drawn in values.items():
        path = path.replace(f"{{{name}}}", drawn())
    return path


def _text(draw: random.Random) -> str:
    return draw.choice(TEXTS).encode("utf-8", "surrogatepass").decode("latin-1")


def _pairs(draw: random.Random, path: str, known: Known) -> list[tuple[str, str]]:
    """Return parameters: known ones with values that may be usable, and others."""
    last = path.rpartition("/")[2]
    named = PARAMETERS.get(last)
    if draw.random() < (0.3 if named is not None else 0.6):
        return []
    if named is None:
        named = {name: [_plain(value) for value in values] for name, values in OPTIONS.items()}
        named |= PARAMETERS[""]
    elif last == "Blast.cgi" and draw.random() < 0.5:
        put = {"CMD": "Put", "PROGRAM": "blastp", "DATABASE": "tiny", "QUERY": draw.choice(LETTERS) * 20}
        chosen = put if draw.random() < 0.4 else {"CMD": "Get", "RID": draw.choice([*known.identifiers, "x"])}
        return [*chosen.items(), *_some(draw, named, known)]
    return _some(draw, named, known)


def _some(draw: random.Random, named: Mapping[str, Sequence[str]], known: Known) -> list[tuple[str, str]]:
    found = []
    for _ in range(draw.choice([0, 1, 1, 2, 3, 6])):
        name = draw.choice([*named])
        value = draw.choice([*named[name]]) if draw.random() < 0.7 else draw.choice(TEXTS)
        if value in ("ID", "FASTA"):
            value = draw.choice([*known.identifiers]) if value == "ID" else fasta(draw).decode("latin-1")
        found.append((draw.choice(TEXTS) if draw.random() < 0.05 else name, value))
    return found


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _query(draw: random.Random, pairs: Sequence[tuple[str, str]]) -> str:
    if draw.random() < 0.1:
        return draw.choice(["&&&", "=", "a=1&a=2", "%", "%ff=%fe", "x" * 3000, "a=" * 500, ";", "\xff", "?" * 9])
    return urlencode(pairs, errors="surrogatepass")


def fasta(draw: random.Random) -> bytes:
    """Return sequences: of one protein, hostile, or many."""
    kind = draw.random()
    if kind < 0.4:
        letters = "".join(draw.choices(LETTERS, k=draw.choice([1, 20, 60, 300])))
        return f">q {draw.choice(TEXTS)}\n{letters}\n".encode("utf-8", "surrogatepass")
    if kind < 0.9:
        return make(draw)
    return draw.choice(
        [b">a\nM\n" * 2000, b">" * 5000, b">a\n" + b"W" * 50_000, b"\n" * 5000, b">a\n>b\n>c\n",
         b"# STOCKHOLM 1.0\n//\n", b'{"identifier": "x"}\n', b"HMMER3/f\n", b"PssmWithParameters ::= {",
         gzip.compress(bytes(1 << 20))]
    )  # fmt: skip


def _stated(draw: random.Random) -> dict[str, Any]:
    """Return a search as JSON has it, mostly one that can be done."""
    options = {}
    for name in draw.sample([*OPTIONS], draw.choice([0, 0, 0, 1, 2, 4])):
        options[name] = draw.choice([*OPTIONS[name]]) if draw.random() < 0.8 else draw.choice(TEXTS)
    queries = (
        f">q\n{''.join(draw.choices(LETTERS, k=40))}\n" if draw.random() < 0.5 else fasta(draw).decode("latin-1")
    )
    found: dict[str, Any] = {"database": draw.choice(["tiny", "tiny", "two", "x", ["tiny", "two"], []])}
    found |= {"queries": queries, "options": options}
    if draw.random() < 0.3:
        found["outputs"] = draw.sample([*OUTPUTS, *TEXTS], 2) if draw.random() < 0.5 else [draw.choice(OUTPUTS)]
    if draw.random() < 0.3:
        found[draw.choice(["title", "query_format", "origin", "x", *TEXTS])] = draw.choice([*TEXTS, 1, None, {}, []])
    if draw.random() < 0.2:
        found[draw.choice([*found])] = draw.choice([*TEXTS, None, 1, 1e300, -(2**70), {}, [], [[]], True])
    return found


JSON_TEXTS = (
    b"[" * 100_000, b'{"database":' * 20_000 + b"1" + b"}" * 20_000, b"[" * 100_000 + b"]" * 100_000,
    b'{"database": NaN}', b'{"database": 1e400, "queries": -Infinity}', b'{"database": "tiny", "queries": "\\ud800"}',
    b'{"database": "tiny", "queries": "MKV", "options": {"evalue": 1e999}}',
    b'{"database": "tiny", "queries": "MKV", "options": {"max_hits": ' + b"9" * 5000 + b"}}",
    b'{"database": "\xff\xfe"}', b'{"database": "tiny", "database": "two"}',
    b'{"database": ["tiny", "tiny"], "queries": "MKV"}', b'\xef\xbb\xbf{"database": "tiny", "queries": "MKV"}',
    '{"database": "tiny"}'.encode("utf-16"), b"null", b'"x"', b"", b"{",
    b'{"database": "tiny", "queries": "MKV", "options": {"include_ids": [' + b'"a",' * 5000 + b'"b"]}}',
)  # fmt: skip
"""Bodies that are JSON, or nearly."""


def _parts(draw: random.Random, pairs: Sequence[tuple[str, str]]) -> bytes:
    """Return a form of parts, which may lack its end, or have too many."""
    found = []
    for name, value in [("queries", fasta(draw).decode("latin-1")), ("database", "tiny"), *pairs]:
        file = f'; filename="{draw.choice(TEXTS)}"' if draw.random() < 0.2 else ""
        head = f'Content-Disposition: form-data; name="{name}"{file}\r\n\r\n'
        found.append(b"--b\r\n" + f"{head}{value}".encode("utf-8", "surrogatepass") + b"\r\n")
    kind = draw.random()
    if kind < 0.5:
        return b"".join([*found, b"--b--\r\n"])
    if kind < 0.6:
        return b"".join(found)
    if kind < 0.65:
        return found[0] * 10_000 if len(found[0]) < 200 else found[0] * 200
    return draw.choice((
        b"--b\r\n\r\nx\r\n--b--", b"--b--", b"--b", b"",
        b"--b\r\nContent-Disposition: form-data\r\n\r\n\r\n--b--\r\n", b"--b\r\n" + b"X: y\r\n" * 3000,
        b'--b\r\nContent-Disposition: form-data; name="' + b"n" * 20_000 + b'"\r\n\r\n',
    ))  # fmt: skip


def _add_body(draw: random.Random, made: HostileRequest, pairs: list[tuple[str, str]]) -> None:
    is_api = made.target.startswith("/api/")
    kind = draw.choices([JSON_TYPE, FORM_TYPE, PARTS_TYPE, "text/plain", ""], [8 if is_api else 1, 3, 3, 4, 0.5])[0]
    if kind == JSON_TYPE:
        body = json.dumps(_stated(draw)).encode() if draw.random() < 0.75 else draw.choice(JSON_TEXTS)
    elif kind == FORM_TYPE:
        form = [("queries", fasta(draw).decode("latin-1")), ("database", "tiny"), *pairs]
        body = _query(draw, form).encode("latin-1")
    elif kind == PARTS_TYPE:
        body, kind = _parts(draw, pairs), f"{PARTS_TYPE}; boundary=b"
    else:
        body = fasta(draw)
        made.target += "?" + _query(draw, [("database", draw.choice(["tiny", "x"])), *pairs])
    if draw.random() < 0.05:
        body = gzip.compress(bytes(8 << 20) if draw.random() < 0.2 else body)
        made.headers.append(("Content-Encoding", "gzip"))
    if kind:
        made.headers.append(("Content-Type", kind))
    made.body = body


def _spoil_path(draw: random.Random, made: HostileRequest) -> None:
    path, mark, query = made.target.partition("?")
    piece, at = draw.choice(PATHS), draw.choice([0, len(path), path.rfind("/"), draw.randint(0, len(path))])
    path = path[:at] + piece + path[at:]
    made.target = path + mark + query
    if draw.random() < 0.1:
        made.target = draw.choice(["*", "http://evil.org/", "http://localhost" + made.target, "x", "/" + made.target])


def _spoil_headers(draw: random.Random, made: HostileRequest) -> None:
    for _ in range(draw.choice([1, 1, 2, 4])):
        name = draw.choice([*HEADERS])
        made.headers.append((name, draw.choice([*HEADERS[name]])))
    if draw.random() < 0.03:
        made.headers += [(f"X-{number}", "y") for number in range(3000)]


def _spoil_method(draw: random.Random, made: HostileRequest) -> None:
    made.method = draw.choice(METHODS)


def _raw(draw: random.Random, made: HostileRequest, known: Known) -> bytes:
    """Return all bytes; whatever the target has that HTTP does not allow makes it none."""
    headers = made.headers
    if not any(name == "Host" for name, _ in headers):
        headers = [("Host", f"127.0.0.1:{known.port}"), *headers]
    body = made.body
    if any(name == "Transfer-Encoding" for name, _ in headers):
        made.framing = "wrong"
    if body or made.method in ("POST", "PUT", "PATCH"):
        if draw.random() < 0.15:
            headers = [*headers, ("Transfer-Encoding", "chunked")]
            size = draw.choice([1 if len(body) < 3000 else 4000, 7 if len(body) < 20_000 else 9000, 100_000])
            pieces = [body[start : start + size] for start in range(0, len(body), size)]
            body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        else:
            headers = [*headers, ("Content-Length", str(len(body)))]
    lines = [f"{made.method} {made.target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace") + body


CHUNKS = (
    b"zz\r\n", b"-1\r\n\r\n", b"5\r\nab", b"f" * 40 + b"\r\n", b"1;" + b"x" * 20_000, b"5\r\nabcdeX\r\n"
)  # fmt: skip
"""Beginnings of bodies in chunks that are none."""

LINES = (b"\r\n folded: 1", b"\r\nno colon", b"\r\n: x", b"\r\nX\0: y", b"\r\nX: \0")
"""Lines that are no headers."""


def _spoil_framing(draw: random.Random, made: HostileRequest) -> None:
    """Lie about the length, or break some bytes."""
    raw = made.raw
    head, _, rest = raw.partition(b"\r\n\r\n")
    kind = draw.randrange(9)
    made.framing = "wrong"
    if kind == 0:
        made.raw, made.framing = raw[: draw.randint(0, len(raw))], "short"
    elif kind == 1:
        lie = draw.choice([b"-1", b"1e3", b"0x10", b"+5", b"5, 6", b"", b"9" * 40, b" 5 5"])
        made.raw = head + b"\r\nContent-Length: " + lie + b"\r\n\r\n" + rest
    elif kind == 2:
        made.raw, made.framing = head + b"\r\nX-End: 1\r\n\r\n" + rest[: len(rest) // 2], "short"
    elif kind == 3:
        chunked = b" HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + draw.choice(CHUNKS)
        made.raw, made.framing = b"POST " + made.target.encode("latin-1", "replace") + chunked, "short"
    elif kind == 4:
        both = b"\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n"
        made.raw = head + both
    elif kind == 5:
        changed = bytearray(raw)
        for _ in range(draw.choice([1, 2, 9])):
            changed[draw.randrange(min(len(changed), 400))] = draw.randrange(256)
        made.raw = bytes(changed)
    elif kind == 6:
        made.raw = head.replace(b"\r\n", b"\n") + b"\n\n" + rest
    elif kind == 7:
        made.raw = raw.replace(b"HTTP/1.1", draw.choice([b"HTTP/1.0", b"HTTP/2.0", b"HTTP/9.9", b"", b"x"]), 1)
    else:
        made.raw = head + draw.choice(LINES) + b"\r\n\r\n" + rest
