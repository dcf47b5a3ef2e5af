"""Class labels that a data set stores as numbers, by their names."""

import json
from collections.abc import Mapping
from typing import Any

Feature = Any  # as `datasets.Features.to_dict` describes a column

_KIND = "_type"  # of a feature, as the library `datasets` writes it


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
    """A value, or those of a list, with its class labels by name; None for the label of a row without one, -1.

    Example:

    >>> named([1, -1], {"_type": "List", "feature": {"_type": "ClassLabel", "names": ["a", "b"]}})
    ['b', None]
    """
    if isinstance(value, list):
        inner = feature[0] if isinstance(feature, list) else (feature or {}).get("feature")
        return [named(each, inner) for each in value]
    if value is None or isinstance(value, str) or not isinstance(feature, dict) or feature.get(_KIND) != "ClassLabel":
        return value
    if isinstance(value, float) or value >= len(feature["names"]):
        raise IndexError(f"{value}, of {len(feature['names'])} names")
    return feature["names"][value] if value >= 0 else None
