"""Validates user input with pydantic and reports the first problem in one sentence."""

import json
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

import pydantic

from albert_tf.files.json import nearest
from albert_tf.files.urls import without_secrets

# What to give, where the name of an option does not tell.
_MISSING = {"dev": "examples to evaluate on, such as a tenth of the rows of --train, moved to a file of their own"}
# How to write a value in TOML, by the type that pydantic misses.
_WRITTEN = {
    "string_type": """; write a text that is like another value in quotes, such as '"1"'""",
    "list_type": """; write a list as '["a", "b"]'""",
    "tuple_type": """; write a list as '["a", "b"]'""",
    "dict_type": "; write a table as '{a = 1}'",
    "bool_type": "; write true or false",
}
Record = TypeVar("Record", bound=pydantic.BaseModel)


def checked(kind: type[Record], values: Mapping[str, Any], source: str = "the options") -> Record:
    """Validates values as strictly as JSON: `"32"` is not a number.

    Args:
        kind: a pydantic model.
        values: by name.
        source: names them in error messages.

    Raises:
        ValueError: a key or value is invalid; the message names the first one.
    """
    try:
        return kind.model_validate_json(json.dumps(values, default=str), strict=True)
    except pydantic.ValidationError as error:
        raise ValueError(without_secrets(_first_problem(kind, error, source))) from None


def _first_problem(kind: type[pydantic.BaseModel], error: pydantic.ValidationError, source: str) -> str:
    # A misspelt key is reported as unknown and as missing; the former says more.
    first, *others = sorted(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    # Of a value that may have several forms there is a problem for each; that of the innermost value says most.
    problem = max([first, *(one for one in others if one["loc"][:1] == first["loc"][:1])], key=_depth)
    where = ".".join(str(part) for part in problem["loc"] if not _is_form(part))
    reason = problem.get("ctx", {}).get("error")
    if problem["type"] == "extra_forbidden":
        hint = nearest(problem["loc"][-1], _sibling_keys(kind, problem["loc"]), otherwise="; remove it.")
        return f"Unknown key {where!r} in {source}{hint}"
    if problem["type"] == "missing":
        name = f"--{where.replace('_', '-')}" if source == "the options" else where
        return (
            f"`{name}` is missing; give {_MISSING.get(where, 'it')}."
            if name != where
            else f"`{where}` is missing in {source}; add it."
        )
    if problem["type"] == "value_error":
        return str(reason)
    cure = _WRITTEN.get(problem["type"], "")
    return f"`{where}` is invalid ({problem['msg']}). Received: {problem['input']!r} in {source}{cure}."


def _depth(problem: Mapping[str, Any]) -> int:
    return sum(not _is_form(part) for part in problem["loc"])


def _is_form(part: Any) -> bool:
    """Whether this is what pydantic calls one of the forms of a value, not a key."""
    return part in ("str", "int", "float", "bool") or "[" in str(part)


def _sibling_keys(kind: type[pydantic.BaseModel], location: tuple) -> list[str]:
    table: Any = kind
    for part in location[:-1]:
        annotation = table.model_fields[part].annotation
        options = [annotation, *typing.get_args(annotation)]  # `Record | None` contains its model
        table = next(option for option in options if hasattr(option, "model_fields"))
    return list(table.model_fields)
