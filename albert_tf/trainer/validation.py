"""Validates values that a user gave; the first problem becomes one sentence."""

import difflib
import json
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

import pydantic

Record = TypeVar("Record", bound=pydantic.BaseModel)


def checked(kind: type[Record], values: Mapping[str, Any], source: str = "the options") -> Record:
    """Validates values as strictly as their JSON would be: `"32"` is not a number.

    Args:
        kind: a pydantic model.
        values: by name.
        source: where they come from, for the error message.

    Returns:
        An instance of `kind`.

    Raises:
        ValueError: one sentence about the first key or value that is invalid.
    """
    try:
        return kind.model_validate_json(json.dumps(values, default=str), strict=True)
    except pydantic.ValidationError as error:
        raise ValueError(_first_problem(kind, error, source)) from None


def _first_problem(kind: type[pydantic.BaseModel], error: pydantic.ValidationError, source: str) -> str:
    # A misspelt key is both unknown and missing: the first says more.
    problem = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")[0]
    where, reason = ".".join(str(part) for part in problem["loc"]), problem.get("ctx", {}).get("error")
    if problem["type"] == "extra_forbidden":
        close = difflib.get_close_matches(str(problem["loc"][-1]), _keys_beside(kind, problem["loc"]), n=1)
        hint = f"did you mean {close[0]!r}" if close else "remove it"
        return f"Every key must be known. Received: {where!r} in {source}; {hint}."
    if problem["type"] == "missing":
        return f"`{where}` must be given. Received: {source} without it; add it."
    if problem["type"] == "value_error":
        return str(reason)
    return f"`{where}` must be valid ({problem['msg']}). Received: {problem['input']!r} in {source}; correct it."


def _keys_beside(kind: type[pydantic.BaseModel], location: tuple) -> list[str]:
    beside: Any = kind
    for part in location[:-1]:
        annotation = beside.model_fields[part].annotation
        options = [annotation, *typing.get_args(annotation)]  # `Record | None` names its record inside
        beside = next(option for option in options if hasattr(option, "model_fields"))
    return list(beside.model_fields)
