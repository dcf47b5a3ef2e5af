"""What a program needs to know, besides weights and vocabulary, to read examples and to turn texts into predictions."""

import pathlib
from collections.abc import Container, Mapping
from typing import Any, ClassVar, Literal, Self

import pydantic

from albert_tf.data.finetuning.classification import Columns
from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.files.atomic import sha256, write_json
from albert_tf.files.json import optional_json, read_json
from albert_tf.files.validation import checked
from albert_tf.tasks.table import SETTINGS_FILE, task_class

RECIPE_FILE, REPORT_FILE = "recipe.json", "metrics.json"  # of a run, its options and results
_EXPORT_AGAIN, _RESTORE = "export the model again", "restore it, or remove it to use the defaults"


class Settings(pydantic.BaseModel):
    """What all tasks have; a subclass has the settings of one task.

    Args:
        task: name of a row of `albert_tf.tasks.TASKS`: `"sequence_classification"`, `"token_classification"`,
            `"multiple_choice"`, `"question_answering"`, `"question_answering_beam"` or `"sentence_embedding"`.
        max_length: maximum number of ids; longer texts are truncated, longer passages are split into windows. None: the
            model's maximum.
        rename_columns: new names of columns by their names in the data, for all tasks, such as `{"frage": "question"}`.
        encoding: of text files, such as `"cp949"`. None: UTF-8, or UTF-16 with a byte-order mark. It counts, as
            `delimiter` does, for the files of this run alone.
        delimiter: between the fields of a table, such as `";"`; None: by the header, see TableFormat.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    # Those that are of the files of a run, not of the model.
    of_files: ClassVar = ("encoding", "delimiter")

    task: str = "sequence_classification"
    max_length: int | None = pydantic.Field(default=None, ge=3)
    rename_columns: dict[str, str] = pydantic.Field(default_factory=dict)
    encoding: str | None = None
    delimiter: str | None = None

    @pydantic.model_validator(mode="after")
    def _check(self):
        self.check()
        return self

    def check(self) -> None:
        """Raises ValueError for settings that exclude each other."""

    @property
    def table(self) -> TableFormat:
        """How files are read."""
        header, is_ragged = getattr(self, "header", True), getattr(self, "ragged_rows", "refuse") == "drop"
        return TableFormat(header, is_ragged, self.encoding, self.delimiter, self.rename_columns)

    @classmethod
    def recorded(cls, values: Mapping[str, Any], source: str, **facts: Any) -> Self:
        """The settings in a record, which may have other entries.

        Args:
            values: the record.
            source: names it in error messages.
            **facts: what is known of the model, whatever the record says; those that the task does not have are left
                out.

        Raises:
            ValueError: a value is invalid.
        """
        values = {**values, **facts}
        names = cls.model_fields.keys() - set(cls.of_files)
        return cls.validated({name: values[name] for name in values.keys() & names}, source)

    @classmethod
    def validated(cls, values: Mapping[str, Any], source: str = "the options") -> Self:
        """The settings with these values; raises ValueError, which names `source`, if one is invalid."""
        names = values.get("labels")
        if names is None:
            return checked(cls, values, source)
        # Checked here, because labels may have lone surrogates, which pydantic refuses in JSON.
        if not isinstance(names, list | tuple) or len({name for name in names if isinstance(name, str)}) < len(names):
            raise ValueError(f"`labels` must be a list of different strings. Received: {str(names)[:60]} in {source}.")
        settings = checked(cls, {name: values[name] for name in values if name != "labels"}, source)
        return settings.with_facts(labels=tuple(names))

    def with_facts(self, **facts: Any) -> Self:
        """The settings with what is known of the model; what the task does not have is left out."""
        known = {name: value for name, value in facts.items() if name in type(self).model_fields}
        settings = self.model_copy(update=known)
        settings.check()
        return settings

    def changed(self, **changes: Any) -> Self:
        """The settings with other values.

        Raises:
            ValueError: the task does not read one of them, or it is invalid.
        """
        check_read(self.task, changes, type(self).model_fields)
        values = {name: getattr(self, name) for name in self.model_fields_set}
        return self.validated({**values, **changes}) if changes else self

    def entries(self) -> dict[str, Any]:
        """What `model.json` says of the model."""
        return self.model_dump(exclude=set(self.of_files))


class TableSettings(Settings):
    """What tasks have whose examples are rows of texts with a label.

    Args:
        text_column, pair_column, label_column: columns of tables; `pair_column` is for pairs of texts.
        header: whether the first row of a table names the columns; otherwise columns are numbers from 0.
        ragged_rows: what to do with rows of a table that have more or fewer fields than its header: `"refuse"` the
            file, or `"drop"` the rows with a warning; without a header, they are read.
        main_score: for texts, the score that decides which weights are kept. None: accuracy, F1 of all decisions, or
            Pearson's correlation.
    """

    text_column: str = "text"
    pair_column: str | None = None
    label_column: str = "label"
    header: bool = True
    ragged_rows: Literal["refuse", "drop"] = "refuse"
    main_score: (
        Literal["accuracy", "f1", "f1_macro", "f1_micro", "exact_match", "matthews", "pearson", "spearman"] | None
    ) = None

    @property
    def columns(self) -> Columns:
        """The columns to read from tables."""
        return Columns(self.text_column, self.pair_column, self.label_column)


def check_read(task: str, options: Mapping[str, Any], names: Container[str]) -> None:
    """Raises ValueError if an option is not one of `names`, those that the task reads."""
    for name, value in options.items():
        if name not in names:
            raise ValueError(
                f"`{name}` must be left out for the task {task!r}, which does not read it. Received: {name}={value!r}."
            )


def read_settings(
    folder: pathlib.Path, longest: int | None = None, kind: type[Settings] | None = None, **facts: Any
) -> Settings:
    """Reads the settings of a model, which may have been edited.

    Args:
        folder: of an export; or with the model's weights, which may lack settings.
        longest: number of positions of the model; None: it is not checked.
        kind: class of the settings of weights. None: that of the task that the file names, of an export.
        **facts: see `Settings.recorded`.

    Raises:
        ValueError: they are missing or damaged, or do not fit the model; the message names the file.
    """
    file, cure = folder / SETTINGS_FILE, _EXPORT_AGAIN if kind is None else _RESTORE
    record = read_json(file, cure=cure) if kind is None else optional_json(file, cure)
    if kind is not None and "task" not in record:  # the file of another program
        record = {}
    try:
        settings_class = kind or task_class(record.get("task")).settings_class
        settings = settings_class.recorded(
            record, str(file), **{"max_length": record.get("max_length") or longest, **facts}
        )
        if longest is not None and (settings.max_length or 0) > longest:
            raise ValueError(
                f"`max_length` must not exceed the model's {longest} positions. Received: {settings.max_length}."
            )
    except ValueError as error:
        raise ValueError(f"{file}: {error} {cure[:1].upper()}{cure[1:]}.") from None
    return settings


def write_settings(folder: pathlib.Path, settings: Settings, **others: Any) -> None:
    """Writes `model.json` to a folder: the settings, and other entries."""
    write_json(folder / SETTINGS_FILE, {**settings.entries(), **others}, ensure_ascii=False)


def files_in(folder: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Size and SHA-256 of each file in the folder of an export, for its `model.json`."""
    return {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
