"""What `model.json` records beside `config.json`: how a model reads texts, and what else was chosen for its task."""

import pathlib
from collections.abc import Container, Mapping
from typing import Any

from albert_tf.files.atomic import write_json
from albert_tf.files.json import has_file, optional_json
from albert_tf.files.urls import location
from albert_tf.models.preprocessor import Preprocessor
from albert_tf.tasks.table import SETTINGS_FILE, TASKS, Task

_CURE = "restore it, or remove it to use the defaults"


def facts_of(model: Any) -> dict[str, Any]:
    """The settings that a model knows, whatever is recorded: its task, labels, problem and embeddings."""
    names = ("labels", "problem", "normalize", "pooling", "max_length")
    facts = {name: getattr(model, name) for name in names if hasattr(model, name)}
    if "labels" in facts:
        facts["labels"] = () if facts.get("problem") == "regression" else tuple(facts["labels"] or ())
    return {**facts, "task": getattr(_task_of(model), "name", None)}


def restore_settings(model: Any, checkpoint: pathlib.Path, given: Container[str]) -> None:
    """Gives a model what is recorded beside its checkpoint, except for the arguments that are given.

    Of another task, or of other labels, it is the length alone.

    Raises:
        ValueError: the record is damaged; the message names the file.
    """
    folder = checkpoint if checkpoint.is_dir() else checkpoint.parent
    record = optional_json(folder / SETTINGS_FILE, _CURE)
    settings = record if _is_of(model, record) else {}
    model.task_settings.update(settings)
    options = {"max_length": record.get("max_length")}
    if model.reads_windows and settings.get("windows") is not None:
        options |= {name: settings.get(name) for name in ("windows", "doc_stride")}
    smoothing = settings.get("label_smoothing") or 0.0
    try:
        if "preprocessor" not in given:
            model.preprocessor = Preprocessor.beside(checkpoint, options)
        if not isinstance(smoothing, float) or not 0 <= smoothing < 1:
            raise ValueError(f"`label_smoothing` must be at least 0 and below 1. Received: {smoothing!r}.")
    except ValueError as error:
        raise ValueError(f"{folder / SETTINGS_FILE}: {error} {_CURE[:1].upper()}{_CURE[1:]}.") from None
    if "label_smoothing" not in given and hasattr(model, "label_smoothing"):
        model.label_smoothing = smoothing


def write_settings(model: Any, folder: str | pathlib.Path) -> None:
    """Writes `model.json` if there is something to record, or one that is there already.

    Raises:
        ValueError: the model cannot read texts as its preprocessor says.
    """
    file, facts, settings = location(folder) / SETTINGS_FILE, facts_of(model), dict(model.task_settings)
    if model.preprocessor is not None:
        model.preprocessor.check(model, takes_pairs=settings.get("pair_column") is not None)
        names = ("max_length", *(("windows", "doc_stride") if model.reads_windows else ()))
        settings |= {name: getattr(model.preprocessor, name) for name in names}
    settings["label_smoothing"] = getattr(model, "label_smoothing", None) or None
    # None is the default, but of pairs, where it says that there are none.
    settings = {name: value for name, value in settings.items() if value is not None or name == "pair_column"}
    if facts["task"] is not None and (settings or has_file(file)):
        settings |= {name: facts[name] for name in ("labels", "problem") if name in facts}
        write_json(file, {**facts, **settings}, ensure_ascii=False)


def _task_of(model: Any) -> Task | None:
    """The first task of a model's class, or of the nearest class that it is derived from."""
    return next((row for kind in type(model).__mro__ for row in TASKS if row.model == kind.__name__), None)


def _is_of(model: Any, record: Mapping[str, Any]) -> bool:
    """Whether a record is of the model's task and, where it names them, of its labels."""
    facts, task = facts_of(model), _task_of(model)
    labels, problem = record.get("labels"), "classification"
    return (
        task is not None
        and any(row.model == task.model for row in TASKS if row.name == record.get("task"))
        and record.get("problem", problem) == facts.get("problem", problem)
        and (not labels or set(labels) == set(facts.get("labels", ())))
    )
