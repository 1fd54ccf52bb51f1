"""The pages: a form, the jobs, what this server is. They work without a script, and load nothing from elsewhere."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Form, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, RedirectResponse
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from swsearch.errors import OptionError, SwsearchError
from swsearch.pipeline.description import PROGRAM_NAMES
from swsearch.remote.urls import TOKEN_VARIABLE
from swsearch.server.auth import CLIENT_COOKIE, TOKEN_COOKIE, Tokens
from swsearch.server.jobs import Job, is_identifier
from swsearch.server.page_examples import EXAMPLES
from swsearch.server.page_fields import FORM_FIELDS, GROUP_TITLES, choices_of, costs, costs_of_preset, fields_of
from swsearch.server.page_forms import TypedSearch, field_of, group_of, in_words
from swsearch.server.page_jobs import JobPages, address_of, client_of, days_of
from swsearch.server.page_problems import problem_page
from swsearch.server.page_views import PAGE_HEADERS, STATIC_TYPES, Shell, named, static_answer
from swsearch.server.problems import ServerProblem, problem_of

if TYPE_CHECKING:
    from swsearch.server.house import House
    from swsearch.server.places import ServedPlace

COOKIE_SECONDS = 365 * 24 * 3600
"""That a browser knows its jobs, and its token."""

MOST_FORM_FIELDS = 500

PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")
"""Beginnings of compressed files."""


class PageRoute(APIRoute):
    """A path whose problems are pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handle = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await handle(request)
            except SwsearchError as error:
                return problem_page(request.scope, problem_of(error))
            except HTTPException as error:
                return problem_page(request.scope, ServerProblem("broken", str(error.detail)), error.status_code)
            except RequestValidationError:
                return problem_page(
                    request.scope, ServerProblem("not_found", f"page {named(request.url.path)} not found")
                )

        return answered


def router_for(house: House) -> APIRouter:
    """Return the pages of a server.

    Parameters
    ----------
    house : House
        What the server can do.
    """
    router = APIRouter(route_class=PageRoute, include_in_schema=False)
    pages, jobs = FormPages(house), JobPages(house)
    for path, read in (
        ("/", pages.form),
        ("/about", pages.about),
        ("/login", pages.login),
        ("/examples/{key}", pages.example),
        ("/static/{digest}/{name}", pages.static),
        ("/jobs", jobs.mine),
        ("/jobs/{identifier}", jobs.job),
        ("/jobs/{identifier}/state", jobs.state),
        ("/jobs/{identifier}/details", jobs.details),
        ("/jobs/{identifier}/summary", jobs.summary),
        ("/jobs/{identifier}/report", jobs.report),
        ("/jobs/{identifier}/report/{first}/subjects", jobs.subjects),
    ):
        router.add_api_route(path, read, methods=["GET", "HEAD"], response_model=None)
    for path, change in (
        ("/search", pages.search),
        ("/login", pages.log_in),
        ("/logout", pages.log_out),
        ("/jobs/{identifier}/cancel", jobs.cancel),
        ("/jobs/{identifier}/delete", jobs.delete),
    ):
        router.add_api_route(path, change, methods=["POST"], response_model=None)
    return router


class FormPages:
    """Answers requests for the form, for what is beside it, and for logging in.

    Parameters
    ----------
    house : House
        What the server can do.
    """

    def __init__(self, house: House) -> None:
        self._house = house
        self._tokens = Tokens(house.settings.tokens)

    def form(self, request: Request) -> Response:
        """Show the form: empty, with an example, or as an earlier job was asked for."""
        given = request.query_params
        typed = TypedSearch(databases=tuple(given.getlist("database")))
        if example := next((each for each in EXAMPLES if each.key == given.get("example")), None):
            typed = replace(typed, queries=example.fasta, values=example.options)
        elif identifier := given.get("from"):
            typed = TypedSearch.of_request(self._request(identifier), queries_of=identifier)
            names = [job.database for job in self._group(identifier)]
            typed = replace(typed, databases=tuple(names))
        return self._shown(request, typed)

    async def search(self, request: Request) -> Response:
        """Take a filled form: submit it, or show it again with what is wrong."""
        limits = self._house.settings.limits
        async with request.form(
            max_files=1, max_fields=MOST_FORM_FIELDS, max_part_size=max(limits.body, 1 << 20)
        ) as form:
            given, file = [], ("", b"")
            for name, value in form.multi_items():
                if isinstance(value, UploadFile):
                    file = (value.filename or "", await value.read())
                else:
                    given.append((name, value))
        typed = TypedSearch.of(given, file)
        return await run_in_threadpool(self._submitted, request, typed)

    def about(self, request: Request) -> Response:
        """Say what this server is, has and takes."""
        health = self._house.health()
        places = [{"name": each.name, **_stated(each), "facts": _facts(each)} for each in self._house.places.values()]
        limits = self._house.settings.limits
        values = {
            "places": places, "limits": limits, "days": days_of(limits.days), "address": address_of(request),
            "first": next(iter(self._house.places), "DATABASE"),
            "program": PROGRAM_NAMES[False, next((each.is_dna for each in self._house.places.values()), False)],
            "token_variable": TOKEN_VARIABLE, "health": {"ok": health.ok, "note": health.why},
        }  # fmt: skip
        return self._shell(request).page("about.html", values)

    def example(self, key: str) -> Response:
        """Give the sequences of an example."""
        found = next((each for each in EXAMPLES if each.key == key), None)
        if found is None:
            raise ServerProblem("not_found", f"example {named(key[:40])!r} not found")
        return PlainTextResponse(found.fasta, headers={**PAGE_HEADERS, "Cache-Control": "public, max-age=3600"})

    def static(self, digest: str, name: str) -> Response:
        """Give a static file."""
        if name not in STATIC_TYPES:
            raise ServerProblem("not_found", f"file {named(name[:40])!r} not found")
        return static_answer(digest, name)

    def login(self, request: Request, next: str = "/") -> Response:
        """Show where to give a token."""
        if not self._tokens:
            return self._go(request, "/")
        values = {"problem": "", "next": safe_path(next)}
        return self._shell(request).page("login.html", values, headers={"Cache-Control": "no-store"})

    def log_in(self, request: Request, token: str = Form(""), next: str = Form("/")) -> Response:
        """Let a browser in that has a token, and go on to the page that it asked for."""
        if self._tokens and self._tokens.owner(token.strip()) is None:
            values = {"problem": "Unknown token.", "next": safe_path(next)}
            return self._shell(request).page("login.html", values, 401, {"Cache-Control": "no-store"})
        answer = self._go(request, safe_path(next))
        if self._tokens:
            self._keep(request, answer, TOKEN_COOKIE, Tokens.cookie(token.strip()))
        return answer

    def log_out(self, request: Request) -> Response:
        """Forget the token of a browser; it still knows which jobs are its own."""
        answer = self._go(request, "/login" if self._tokens else "/")
        answer.delete_cookie(TOKEN_COOKIE, path=self._shell(request).root or "/")
        return answer

    def _shell(self, request: Request) -> Shell:
        return Shell.of(request, bool(self._tokens))

    def _go(self, request: Request, path: str) -> Response:
        return RedirectResponse(f"{self._shell(request).root}{path}", 303, PAGE_HEADERS)

    def _keep(self, request: Request, answer: Response, name: str, value: str) -> None:
        answer.set_cookie(
            name, value, max_age=COOKIE_SECONDS, path=self._shell(request).root or "/",
            secure=request.url.scheme == "https", httponly=True, samesite="strict",
        )  # fmt: skip

    def _request(self, identifier: str) -> Any:
        if not is_identifier(identifier):
            raise ServerProblem("not_found", f"job {named(identifier[:40])!r} not found")
        return self._house.request(identifier)

    def _group(self, identifier: str) -> list[Job]:
        return self._house.group(self._house.job(identifier).group)

    def _submitted(self, request: Request, typed: TypedSearch) -> Response:
        client, cookie = client_of(request), ""
        if CLIENT_COOKIE not in request.cookies:
            # only now, when the browser comes from this site: from elsewhere it does not bring the cookie that it has
            cookie = secrets.token_urlsafe(24)
            client = f"{client}/{cookie}"
        try:
            queries = typed.content()
            if queries.startswith(PACKED):
                expected = "text; decompress the file first"
                raise OptionError("queries", typed.file_name, expected)
            if not queries.strip() and typed.queries_of:
                queries = self._request(typed.queries_of).queries
            jobs = self._house.submit(typed.requests(queries), client)
        except SwsearchError as error:
            return self._shown(request, typed.again(), error)
        answer = self._go(request, f"/jobs/{jobs[0].identifier}")
        if cookie:
            self._keep(request, answer, CLIENT_COOKIE, cookie)
        return answer

    def _shown(self, request: Request, typed: TypedSearch, error: SwsearchError | None = None) -> Response:
        """Return the form as it is filled, with what is wrong at its field."""
        places = [{"name": each.name, **_stated(each)} for each in self._house.places.values()]
        ready = [place["name"] for place in places if place["state"] == "ready"]
        if not typed.databases and ready and (error is None or len(places) == 1):
            typed = replace(typed, databases=(ready[0],))
        problem = None if error is None else problem_of(error)
        wrong = "" if error is None else field_of(error)
        opened = {group_of(wrong)} | {group_of(name) for name, text in typed.values.items() if _is_chosen(name, text)}
        values = {
            "here": "form", "typed": typed, "places": places, "limits": self._house.settings.limits,
            "titles": GROUP_TITLES, "fields_of": fields_of,
            "choices": {name: choices_of(each) for name, each in FORM_FIELDS.items()},
            "examples": EXAMPLES, "costs": _costs(), "opened": opened,
            "problem": "" if problem is None else in_words(str(problem), wrong), "wrong": wrong,
            "told": "" if problem is None else in_words(str(problem), wrong, is_there=True),
        }  # fmt: skip
        status = 200 if problem is None else problem.status
        headers = {"Retry-After": str(problem.retry_after)} if problem is not None and problem.retry_after else {}
        return self._shell(request).page("form.html", values, status, headers)


def safe_path(path: str) -> str:
    """Return a path of this server to go to, or the first page's where it may lead elsewhere."""
    return path if re.fullmatch(r"/(?![/\\])[\w/?=&.~%-]*", path, re.ASCII) and len(path) < 500 else "/"


def _is_chosen(name: str, text: str) -> bool:
    return bool(text.strip()) and text != FORM_FIELDS[name].default


def _costs() -> dict[str, Any]:
    """Return the gap costs of every matrix, and of the presets, for the script."""
    found: dict[str, Any] = {name: [opened, extended] for name, opened, extended in costs()}
    presets = {word: list(costs_of_preset(word)) for word, _ in FORM_FIELDS["preset"].choices}
    return {"matrices": found, "presets": presets}


def _stated(place: ServedPlace) -> dict[str, Any]:
    """Return what the form says of a database."""
    stated = place.stated()
    built = str(stated.get("built") or "")
    return {
        "title": PurePath(stated["title"]).stem,
        "is_dna": place.is_dna,
        "subjects": stated["n_subjects"],
        "residues": stated["nucleotides"] if place.is_dna else stated["n_residues"],
        "built": built[:10],
        # one whose file was replaced is searched as it was opened
        "state": "failed" if stated["state"] == "failed" else "ready",
        "problem": stated.get("problem") or "",
    }


def _facts(place: ServedPlace) -> list[tuple[str, str]]:
    """Return what is known of a database, in words."""
    stated = place.stated()
    facts = [
        ("DNA records" if place.is_dna else "Proteins", f"{stated['n_subjects']:,}"),
        ("Nucleotides", f"{stated['nucleotides']:,}" if place.is_dna else ""),
        ("Genetic code", str(stated.get("genetic_code") or "")),
        ("Residues of six frames" if place.is_dna else "Residues", f"{stated['n_residues']:,}"),
        ("Mask", {"none": "none", "lower": "lower case", "tantan": "low complexity"}.get(stated["mask"], "")),
        ("Built", str(stated.get("built") or "")),
        ("Built from", ", ".join(_source(each) for each in stated.get("sources") or ())),
        ("SHA-256", str(stated.get("sha256") or "")),
        ("Identity", str(stated.get("identity") or "")),
        ("Engine", str(stated.get("engine") or "")),
        ("Note", str(stated.get("problem") or "")),
    ]
    return [(name, value) for name, value in facts if value]


def _source(stated: Any) -> str:
    if not isinstance(stated, dict):
        return str(stated)
    return str(stated.get("path") or json.dumps(stated))
