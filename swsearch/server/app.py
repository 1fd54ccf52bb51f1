"""The server as an ASGI application: routes, error handlers and middleware."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response

from swsearch.client.urls import API_PATH
from swsearch.errors import SwsearchError
from swsearch.server import api, blast, msa_api, pages
from swsearch.server.access import METRICS_TYPE, Access, Metrics
from swsearch.server.errors import framework_problem, respond
from swsearch.server.jobs import REPORT_THREADS, SEARCH_THREADS, Jobs
from swsearch.version import version

SHORT_THREADS = 16
"""Threads for work of milliseconds, e.g. a look at a job."""


def create_app(jobs: Jobs) -> FastAPI:
    """Return the application of a server, which runs the jobs while it serves."""
    metrics = Metrics(jobs)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = SHORT_THREADS
        app.state.limiters = {"searches": CapacityLimiter(SEARCH_THREADS), "reports": CapacityLimiter(REPORT_THREADS)}
        running = asyncio.create_task(jobs.run())
        yield
        jobs.stop_all()
        running.cancel()
        await asyncio.wait([running])

    app = FastAPI(
        title="swsearch",
        version=version(),
        description="Exact Smith-Waterman searches of resident databases.",
        openapi_url=f"{API_PATH}/openapi.json",
        root_path_in_servers=False,
        generate_unique_id_function=lambda route: route.name,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.jobs, app.state.tickets = jobs, msa_api.Tickets(jobs)
    app.include_router(api.router)

    @app.get("/metrics", include_in_schema=False)
    def metrics_of_now() -> Response:
        return Response(metrics.text(), headers={"Content-Type": METRICS_TYPE})

    app.include_router(blast.router)
    app.include_router(msa_api.router)
    app.include_router(pages.router)
    for kind in (SwsearchError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _answer_error)
    app.add_middleware(Access, settings=jobs.settings, metrics=metrics)
    return app


async def _answer_error(request: Request, error: Exception) -> Response:
    if isinstance(error, SwsearchError):
        return respond(request.scope, api.jobs_of(request).problem_for(error))
    response = respond(request.scope, framework_problem(request.scope, error))
    if isinstance(error, HTTPException) and "allow" in (headers := Headers(error.headers or {})):
        response.headers["Allow"] = headers["allow"]
    return response
