"""Rules that select variables by regular expressions over `variable.path`."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")

ALBERT_EXCLUSIONS = ("LayerNorm", "layer_norm", "bias")
"""Layer normalisation in Google's spelling and ours, and all biases."""


def is_excluded(path: str, patterns: Iterable[str] | None) -> bool:
    """Whether any of the regular expressions is found anywhere in the path.

    Example:

    >>> is_excluded("encoder/ffn_layer_norm/gamma", ALBERT_EXCLUSIONS)
    True
    >>> is_excluded("encoder/attention/query/kernel", ALBERT_EXCLUSIONS)
    False
    """
    return any(re.search(pattern, path) for pattern in patterns or ())


def check_patterns(name: str, patterns: Iterable[str] | None) -> tuple[str, ...] | None:
    """The patterns as a tuple; None stays None. Raises ValueError, naming the argument, for others."""
    if patterns is None:
        return None
    if isinstance(patterns, str):
        raise ValueError(
            f"`{name}` must be a list of regular expressions. Received: {name}={patterns!r}; write ({patterns!r},)."
        )
    patterns = tuple(patterns)
    for pattern in patterns:
        _check_pattern(name, pattern)
    return patterns


def check_factors(name: str, rules: Iterable[tuple[str, float]] | None) -> tuple[tuple[str, float], ...] | None:
    """The rules as a tuple of (pattern, factor >= 0), or None. Raises ValueError, naming the argument, for others."""
    if rules is None:
        return None
    checked = []
    for rule in rules:
        pattern, factor = rule if isinstance(rule, list | tuple) and len(rule) == 2 else (rule, math.nan)
        is_number = isinstance(factor, int | float) and not isinstance(factor, bool)
        if not (is_number and 0 <= factor < math.inf):
            raise ValueError(
                f"`{name}` must be pairs of a regular expression and a factor of at least 0. Received: {rule!r}."
            )
        _check_pattern(name, pattern)
        checked.append((pattern, float(factor)))
    return tuple(checked) or None


def assign_rules(rules: Sequence[tuple[str, T]], paths: Sequence[str], name: str = "rules") -> dict[str, T]:
    """Assigns to each path the value of the first rule whose pattern is found in it.

    To detect forgotten variables and misspelt patterns, rules must cover every path, and each must apply to at least
    one.

    Args:
        rules: sequence of (str, value). Regular expressions, in order of precedence, and their values.
        paths: sequence of str. The paths of the variables.
        name: str. The name of the rules in errors.

    Returns:
        dict from path to value, in the order of `paths`.

    Raises:
        ValueError: no rule covers a path, or a rule applies to none.

    Example:

    >>> assign_rules([("embeddings", 0.5), (".*", 1.0)], ["embeddings/word", "pooler/kernel"])
    {'embeddings/word': 0.5, 'pooler/kernel': 1.0}
    """
    for pattern, _ in rules:
        _check_pattern(name, pattern)
    values, unused = {}, set(range(len(rules)))
    for path in paths:
        index = next((i for i, (pattern, _) in enumerate(rules) if re.search(pattern, path)), None)
        if index is None:
            raise ValueError(
                f"`{name}` must cover every variable. Received: no rule for {path!r}; end with a '.*' rule."
            )
        values[path] = rules[index][1]
        unused.discard(index)
    if unused:
        names = ", ".join(repr(rules[i][0]) for i in sorted(unused))
        raise ValueError(
            f"Every rule in `{name}` must apply to at least one variable. Received: no variables for {names}; correct "
            "the pattern, or move it before the rules that match its variables."
        )
    return values


def _check_pattern(name: str, pattern: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, TypeError) as error:
        raise ValueError(f"`{name}` must be regular expressions. Received: {pattern!r} ({error}).") from None
