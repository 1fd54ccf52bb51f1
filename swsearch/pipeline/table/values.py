"""Kinds of option values that may be files: identifiers, taxids and matrices."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from swsearch.errors import InputError, OptionError, check_integer, format_value
from swsearch.options.kinds import JsonSchema, ValueKind, Widget

if TYPE_CHECKING:
    from swsearch.scoring import Matrix

Identifiers = Iterable[str] | str | Path
"""Identifiers or accessions, or the name of a file with one per line."""

Taxids = Iterable[int | str] | int | str | Path
"""NCBI taxids: one, several, text such as ``9606,10090``, or the name of a file with one per line."""

MAX_MATRIX_NAME = 4096
"""Characters in the name of a matrix that is given as text: as many as a path may have."""


SHOWN_TAXIDS = 5
"""Taxids that a message or report lists."""


class CheckedList(tuple[Any, ...]):
    """A list that was validated. It may hold millions of values, so it is validated once."""

    __slots__ = ()


class IdentifierList(ValueKind):
    """Identifiers of subjects. Text has one per line, or commas between them."""

    python_type: ClassVar[str] = "iterable of str or path"
    metavar: ClassVar[str] = "FILE"
    widget: ClassVar[Widget] = "lines"
    is_file: ClassVar[bool] = True

    def check(self, name: str, value: Any) -> CheckedList:
        return value if isinstance(value, CheckedList) else CheckedList(read_identifiers(value, name))

    def check_json(self, name: str, value: Any) -> CheckedList:
        if not isinstance(value, (list, tuple)) or not all(isinstance(each, str) for each in value):
            raise OptionError(name, value, "a list of identifiers")
        if not value:
            raise OptionError(name, value, "a list of at least one identifier")
        return self.check(name, value)

    def parse(self, name: str, text: str) -> list[str]:
        words = text.split() if "\n" in text else re.split(r"[,\s]+", text)
        return [name for word in words if (name := word.strip(",;"))]

    def format(self, value: Any) -> Any:
        return None

    def describe(self, value: Any) -> str:
        return f"{len(value):,} identifiers"

    def fingerprint(self, value: Any) -> str:
        names = sorted({str(each).encode("utf-8", "surrogatepass") for each in value})
        digest = hashlib.sha256(b"\n".join(names)).hexdigest()
        return f"{len(names):,} identifiers, {digest}"

    def schema(self) -> JsonSchema:
        return {"type": "array", "items": {"type": "string"}, "minItems": 1}


class TaxidList(IdentifierList):
    """NCBI taxids."""

    python_type: ClassVar[str] = "int, str, path or iterable of int"
    metavar: ClassVar[str] = "LIST|FILE"

    def check(self, name: str, value: Any) -> CheckedList:
        return value if isinstance(value, CheckedList) else CheckedList(read_taxids(value, name))

    def check_json(self, name: str, value: Any) -> CheckedList:
        if not isinstance(value, (list, tuple)):
            raise OptionError(name, value, "a list of taxids")
        return self.check(name, value)

    def parse(self, name: str, text: str) -> list[str]:
        return [each for each in re.split(r"[,;\s]+", text) if each]

    def format(self, value: Any) -> str:
        return ",".join(map(str, value))

    def describe(self, value: Any) -> str:
        return ", ".join(map(str, value)) if len(value) <= SHOWN_TAXIDS else f"{len(value):,} taxids"

    def fingerprint(self, value: Any) -> str:
        return super().fingerprint(value).replace("identifiers", "taxids")

    def schema(self) -> JsonSchema:
        return {"type": "array", "items": {"type": ["integer", "string"]}, "minItems": 1}


class DatabaseFile(ValueKind):
    """A database, a manifest of volumes or a FASTA file, by its path."""

    python_type: ClassVar[str] = "path"
    metavar: ClassVar[str] = "DATABASE"
    is_file: ClassVar[bool] = True

    def check(self, name: str, value: Any) -> str:
        expected = "the path of a database or FASTA file"
        if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
            raise OptionError(name, value, expected)
        path = os.fspath(value)
        if not os.path.exists(path):  # noqa: PTH110  # pathlib's raises for long names
            raise OptionError(name, path, expected, "there is no such file; check the name")
        return path


class MatrixValue(ValueKind):
    """A substitution matrix: its name or file; in JSON its name or text."""

    python_type: ClassVar[str] = "Matrix, str or path"
    metavar: ClassVar[str] = "NAME|FILE"
    widget: ClassVar[Widget] = "choice"
    is_file: ClassVar[bool] = True

    def check(self, name: str, value: Any) -> Matrix:
        from swsearch.alphabet import PROTEIN
        from swsearch.scoring import Matrix, load_matrix

        return value if isinstance(value, Matrix) else load_matrix(value, PROTEIN)

    def check_json(self, name: str, value: Any) -> Matrix:
        from swsearch.alphabet import PROTEIN
        from swsearch.scoring import Matrix, load_matrix, matrix_from_text, matrix_names

        if isinstance(value, Matrix):
            return value
        if isinstance(value, Mapping):
            for key in value:
                if key not in ("name", "text"):
                    raise InputError(f"{name}: got {format_value(key)}, expected name, text")
            title, text = value.get("name", "custom"), value.get("text")
            if not isinstance(title, str) or len(title) > MAX_MATRIX_NAME or "\0" in title:
                raise OptionError(f"{name}.name", title, f"a text of at most {MAX_MATRIX_NAME:,} characters")
            if not isinstance(text, str):
                raise OptionError(f"{name}.text", text, "a matrix in NCBI's format")
            return matrix_from_text(text, title, PROTEIN)
        by_upper_case = {each.upper(): each for each in matrix_names(PROTEIN)}
        if not isinstance(value, str) or value.upper() not in by_upper_case:
            names = ", ".join(by_upper_case.values())
            raise OptionError(name, value, f"one of {names}, or its text: {{'name': ..., 'text': ...}}")
        return load_matrix(by_upper_case[value.upper()], PROTEIN)

    def format(self, value: Matrix) -> str:
        return value.name

    def schema(self) -> JsonSchema:
        properties = {"name": {"type": "string"}, "text": {"type": "string"}}
        text = {"type": "object", "properties": properties, "required": ["text"], "additionalProperties": False}
        return {"anyOf": [{"type": "string"}, text]}

    def complete(self, prefix: str) -> list[str]:
        from swsearch.matrices import GAP_COSTS

        return [name for name in GAP_COSTS if name.startswith(prefix)]


def read_identifiers(source: Identifiers, option: str) -> tuple[str, ...]:
    """Return distinct identifiers from a file with one per line, or from an iterable; a string names a file."""
    if isinstance(source, (str, os.PathLike)):
        from swsearch.db.name_lookup import read_list

        return tuple(read_list(source, option))
    if isinstance(source, bytes) or not isinstance(source, Iterable):
        raise OptionError(option, source, "identifiers, or the name of a file with one per line")
    identifiers = dict.fromkeys(_identifier(option, each) for each in source)
    identifiers.pop("", None)
    if not identifiers:
        raise InputError(f"{option}: no identifiers found, expected at least one")
    return tuple(identifiers)


def _identifier(option: str, value: Any) -> str:
    if not isinstance(value, str) and (isinstance(value, bool) or not hasattr(value, "__index__")):
        raise OptionError(option, value, "identifiers as strings")
    return str(value).strip()


def read_taxids(source: Taxids, option: str) -> tuple[int, ...]:
    """Return distinct taxids in ascending order; text that is no list of numbers names a file."""
    from swsearch.db.name_lookup import read_list

    values: Any = [source] if isinstance(source, int) else source
    if isinstance(source, str) and not source.strip():
        raise OptionError(option, source, "taxids, such as 9606,10090, or the name of a file with one per line")
    if isinstance(source, (str, os.PathLike)):
        is_list = isinstance(source, str) and re.fullmatch(r"[-+0-9,\s]*[0-9][-+0-9,\s]*", source) is not None
        values = re.split(r"[,\s]+", str(source).strip(", \n")) if is_list else read_list(source, option, "taxids")
    if isinstance(values, bytes) or not isinstance(values, Iterable):
        raise OptionError(option, source, "taxids, or the name of a file with one per line")
    taxids = sorted({_taxid(option, each) for each in values})
    if not taxids:
        raise InputError(f"{option}: got no taxid, expected at least one")
    return tuple(taxids)


def _taxid(option: str, value: Any) -> int:
    from swsearch.db.taxonomy import MAX_TAXID

    expected = f"a taxid, a number from 1 to {MAX_TAXID:,}"
    if isinstance(value, str):
        if not re.fullmatch(r"[0-9]{1,10}", value.strip()):
            raise OptionError(option, value.strip(), expected)
        value = int(value)
    return check_integer(option, value, 1, MAX_TAXID, expected)
