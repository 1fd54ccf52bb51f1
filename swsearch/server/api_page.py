"""The page that documents the API: made of its OpenAPI description, and like all pages of nothing from elsewhere."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Request, Response

from swsearch.remote.wire import OPTION_NAMES
from swsearch.server.page_views import Shell


def api_page(request: Request, description: dict[str, Any], has_tokens: bool) -> Response:
    """Return the page.

    Parameters
    ----------
    request : Request
        Who asks for it.
    description : dict of str to object
        OpenAPI.
    has_tokens : bool
        Whether there is anybody to log out.
    """
    shell = Shell.of(request, has_tokens)
    routes = [
        _route(method.upper(), shell.root + path, route)
        for path, methods in description["paths"].items()
        for method, route in methods.items()
    ]
    return shell.page("api.html", {"routes": routes})


def _route(method: str, path: str, route: dict[str, Any]) -> dict[str, Any]:
    given = [(each["name"], each["description"]) for each in route.get("parameters", ())]
    example = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
    return {
        "name": route["operationId"],
        "method": method,
        "path": path,
        "summary": route["summary"],
        "text": route["description"],
        "parameters": [(name, words) for name, words in given if name not in OPTION_NAMES],
        "options": [name for name, _ in given if name in OPTION_NAMES],
        "example": "" if example is None else json.dumps(example, indent=2),
        "answers": [(status, each["description"].rstrip(".")) for status, each in sorted(route["responses"].items())],
    }
