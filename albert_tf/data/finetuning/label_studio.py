"""Full exports of Label Studio."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from albert_tf.files.origins import where


def annotated(fields: dict[str, Any], path: Path, line: int) -> Iterator[dict[str, Any]]:
    """The rows that Label Studio's JSON-MIN has for a task of a full export; other rows as they are.

    There is one for each annotation, or one with `annotation_id` None if there is none that was not skipped. Choices,
    ratings, numbers and labelled spans are fields with the names of their controls, beside those of the task's data.

    Args:
        fields: a row.
        path: its file.
        line: its number there.

    Raises:
        ValueError: the task has a result without what belongs to it.
    """
    data, annotations = fields.get("data"), fields.get("annotations")
    if not isinstance(data, dict) or not isinstance(annotations, list):
        yield fields
        return
    try:
        valid = [annotation for annotation in annotations if not annotation.get("was_cancelled")]
        for annotation in valid:
            yield {**data, "annotation_id": annotation.get("id", ""), **_results(annotation["result"])}
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(
            f"{where(path, line)}, has no annotations as Label Studio writes them ({error!r}); export it again."
        ) from None
    if not valid:
        yield {**data, "annotation_id": None}


def _results(results: list[dict[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for result in results:
        kind, value = result["type"], result.get("value", {})  # relations have no value
        if kind == "choices":
            fields[result["from_name"]] = {"choices": value["choices"]}
        elif kind in ("rating", "number"):
            fields[result["from_name"]] = value[kind]
        elif kind == "labels":
            fields.setdefault(result["from_name"], []).append(value)
    return fields
