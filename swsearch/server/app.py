"""The server as an ASGI application: its routes, and how problems are answered."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response

from swsearch.errors import SwsearchError, shown
from swsearch.server import api, blast_url, pages
from swsearch.server.answers import API
from swsearch.server.api_page import api_page
from swsearch.server.api_words import methods_of
from swsearch.server.gate import Gate
from swsearch.server.metrics import METRICS_TYPE, Metrics
from swsearch.server.page_problems import answer_to
from swsearch.server.problems import ServerProblem, problem_of
from swsearch.server.threads import Pools, Waiters
from swsearch.version import version

if TYPE_CHECKING:
    from swsearch.server.house import House

_CODES = {404: "not_found", 405: "not_possible", 413: "too_large", 415: "wrong_type", 401: "not_authenticated"}
_CODES |= {403: "not_allowed", 503: "unavailable", 429: "too_many"}


def create_app(
    house: House, *, log: Callable[[str], None] = print, access_log: Callable[[str], None] | None = None
) -> FastAPI:
    """Return the application of a house.

    Parameters
    ----------
    house : House
        What it serves; open, and closed by whoever opened it, after the application.
    log : callable, optional
        Takes a line about a failure.
    access_log : callable, optional
        Takes a line about each request.
    """
    pools, metrics = Pools(), Metrics(house)
    waiters = Waiters(house.job, pools)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        waiters.close()
        pools.close(wait=False)  # the house, which is closed next, ends what they do

    app = FastAPI(
        title="swsearch",
        version=version(),
        description="Exact Smith-Waterman searches of resident databases.",
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.pools, app.state.waiters, app.state.house = pools, waiters, house
    app.include_router(api.router_for(house, pools, waiters))
    _add_metrics(app, metrics, pools, bool(house.settings.tokens))
    app.include_router(blast_url.router_for(house))
    app.include_router(pages.router_for(house))
    for kind in (SwsearchError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _answered)
    app.add_middleware(Gate, settings=house.settings, metrics=metrics, log=log, access_log=access_log)
    return app


def _add_metrics(app: FastAPI, metrics: Metrics, pools: Pools, has_tokens: bool) -> None:
    @app.get("/metrics", include_in_schema=False)
    async def metrics_of_now(request: Request) -> Response:
        return Response(await pools.short(metrics.text), headers={"Content-Type": METRICS_TYPE})

    @app.get("/api", include_in_schema=False)
    async def page_of_the_api(request: Request) -> Response:
        return api_page(request, app.openapi(), has_tokens)


async def _answered(request: Request, error: Exception) -> Response:
    answer = answer_to(request.scope, told(request, error))
    if isinstance(error, HTTPException) and "allow" in (given := Headers(error.headers or {})):
        path = request.scope["path"].removeprefix(request.scope["root_path"])
        answer.headers["Allow"] = ", ".join(methods_of(path)) or given["allow"]  # the framework knows of one
    return answer


def told(request: Request, error: Exception) -> ServerProblem:
    """Return what is wrong with a request, in our words.

    Parameters
    ----------
    request : Request
        It.
    error : Exception
        A problem, or what the framework raised.
    """
    if isinstance(error, HTTPException):
        if isinstance(error.__cause__, SwsearchError):  # raised while the framework read a form
            return problem_of(error.__cause__)
        path, method = request.url.path[:200], request.method
        code = _CODES.get(error.status_code, "broken" if error.status_code < 500 else "failed")
        words = {
            "not_found": f"no page {shown(path)}; {API}/openapi.json lists what there is",
            "not_possible": f"{method[:20]} is not possible for {shown(path)}",
        }
        return ServerProblem(code, words.get(code, str(error.detail)))
    if isinstance(error, RequestValidationError):
        first: dict[str, Any] = dict(error.errors()[0])
        name = ".".join(str(part) for part in first.get("loc", ())[1:])
        return ServerProblem("wrong", f"{name}: got {shown(first.get('input'))}, expected another value", option=name)
    return problem_of(error)
