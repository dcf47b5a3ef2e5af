"""Class labels that a data set stores as numbers, by their names."""

import json
from collections.abc import Mapping
from typing import Any

_KIND = "_type"
Feature = Any  # as `datasets.Features.to_dict` describes a column


def features_of(metadata: Mapping[bytes, bytes] | None) -> dict[str, Feature]:
    """The features of the columns, from the metadata of a schema of Arrow or Parquet; empty if they are not there.

    Raises:
        json.JSONDecodeError, UnicodeDecodeError, RecursionError: the metadata are damaged.
    """
    try:
        return dict(json.loads((metadata or {})[b"huggingface"])["info"]["features"] or {})
    except (KeyError, TypeError):
        return {}


def with_names(fields: Mapping[str, Any], features: Mapping[str, Feature], place: str) -> dict[str, Any]:
    """The fields of a row with class labels by name; raises ValueError, which names `place`, if one has none."""
    try:
        return {name: named(value, features.get(name)) for name, value in fields.items()}
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"{place}: a class label is not the number of one of its names ({error}).") from None


def named(value: Any, feature: Feature) -> Any:
    """A value with its class labels by name; None for the label of a row without one, -1.

    Example:

    >>> named([1, -1], {"_type": "List", "feature": {"_type": "ClassLabel", "names": ["a", "b"]}})
    ['b', None]
    """
    if value is None or isinstance(value, str) or not feature:
        return value
    if isinstance(feature, list):
        return [named(each, feature[0]) for each in value]
    if not isinstance(feature, dict):
        return value
    kind, inner = feature.get(_KIND), feature.get("feature")
    if kind == "ClassLabel":
        names = feature["names"]
        if isinstance(value, float) or value >= len(names):
            raise IndexError(f"{value}, of {len(names)} names")
        return names[value] if value >= 0 else None
    if isinstance(value, dict):  # a Sequence of dicts is stored as a dict of lists
        fields = (
            {name: [each] for name, each in inner.items()}
            if isinstance(inner, dict) and _KIND not in inner
            else feature
        )
        return {name: named(each, fields.get(name)) for name, each in value.items()}
    return [named(each, inner) for each in value] if isinstance(value, list) else value
