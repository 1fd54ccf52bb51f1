"""The page that documents the API: made of its OpenAPI description, with no script and nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h2 { font-size: 1.1rem; margin-top: 2.5rem; overflow-wrap: anywhere; }
code, pre { font: .9em ui-monospace, monospace; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid #8888; border-radius: 4px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; min-width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #8884; }
"""


def policy_of(style: str) -> str:
    """Return the content security policy of a page with one style sheet and nothing else."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    nothing = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; style-src 'sha256-{digest}'; {nothing}"


def api_page(description: dict[str, Any], root: str) -> tuple[str, str]:
    """Return the page, and the policy that it is sent with.

    Parameters
    ----------
    description : dict
        OpenAPI.
    root : str
        What stands before all paths.
    """
    parts = [
        "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
        "<meta name=viewport content='width=device-width, initial-scale=1'>\n"
        f"<title>swsearch: HTTP API</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>HTTP API</h1>\n"
        f"<p>{escape(description['info']['description'])} Programs read the same as "
        f"<a href='{escape(root)}/api/v1/openapi.json'>OpenAPI</a>.</p>\n"
    ]
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            parts += _route(method.upper(), root + path, route)
    return "".join([*parts, "</body>\n</html>\n"]), policy_of(STYLE)


def _route(method: str, path: str, route: dict[str, Any]) -> list[str]:
    name = escape(route.get("operationId", ""))
    parts = [
        f"<h2 id='{name}'><code>{method} {escape(path)}</code></h2>\n"
        f"<p><strong>{escape(route.get('summary', ''))}.</strong> {escape(route.get('description', ''))}</p>\n"
    ]
    rows = [(each["name"], each["in"], each.get("description", "")) for each in route.get("parameters", ())]
    parts += _table(("parameter", "in", "what"), rows)
    example = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
    if example is not None:
        parts.append(f"<pre>{escape(json.dumps(example, indent=2))}</pre>\n")
    answers = [(status, "", each.get("description", "")) for status, each in route.get("responses", {}).items()]
    return [*parts, *_table(("status", "", "answer"), answers)]


def _table(head: Sequence[str], rows: Sequence[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    titles = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    return [
        f"<div class=wide><table><thead><tr>{titles}</tr></thead><tbody>\n",
        *(f"<tr>{line}</tr>\n" for line in lines),
        "</tbody></table></div>\n",
    ]
