"""The folder of a run: its files, and the recipe that identifies the run that may be resumed there."""

import contextlib
import dataclasses
import hashlib
import json
import math
import pathlib
import shutil
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from albert_tf.files.atomic import sha256, write_json
from albert_tf.files.json import has_file, parse_json, read_bytes, read_json
from albert_tf.files.urls import is_url, mirrored, upload_changes, without_secrets

RECIPE_FILE = "recipe.json"
METRICS_FILE = "metrics.jsonl"
RESULTS_FILE = "results.json"  # of pretraining
REPORT_FILE = "metrics.json"  # of fine-tuning
CHECKPOINTS_FOLDER = "checkpoints"
LOGS_FOLDER = "logs"  # of TensorBoard
MODEL_FOLDER = "model"
_MAX_METRICS_BYTES = 1 << 30
_RESTORE = "restore it from a copy, or give another folder"


@contextlib.contextmanager
def run_folder(output: Any, is_writer: bool = True) -> Iterator[pathlib.Path]:
    """The folder of a run on disk; see `mirrored`."""
    with mirrored(output, is_writer) as folder:
        if is_url(output):
            for checkpoint in (folder / CHECKPOINTS_FOLDER).glob("*"):
                if not any(checkpoint.glob("*.json")):  # an upload or a removal was interrupted
                    shutil.rmtree(checkpoint)
        yield folder


def check_folder(folder: pathlib.Path, recipe: Mapping[str, Any], allow_changed: bool | None = None) -> None:
    """Checks that a folder is empty or belongs to a recipe; writes nothing.

    Args:
        folder: need not exist.
        recipe: JSON values.
        allow_changed: whether to only warn if the recipe in the folder differs; None if there is no such option.

    Raises:
        ValueError: the folder belongs to another recipe, holds other files, or has a path that TensorFlow cannot read.
    """
    if set("[\\") & set(str(folder)):  # TensorFlow takes the path of a checkpoint for a pattern
        raise ValueError(f"The path of {folder} must not have '[' or '\\'; use another folder.")
    if has_file(folder / RECIPE_FILE, _RESTORE):
        changes = differences(read_json(folder / RECIPE_FILE, cure=_RESTORE), json.loads(json.dumps(recipe)))
        if changes and not allow_changed:
            cure = "remove this one" if allow_changed is None else "pass `--allow-changed`"
            raise ValueError(
                f"{folder} belongs to a run with another recipe ({'; '.join(changes[:5])}); use another folder, or "
                f"{cure}."
            )
        if changes:
            warnings.warn(f"The recipe of {folder} has changed: {'; '.join(changes)}.", stacklevel=2)
        return
    # A killed run may leave the recipe under its temporary name.
    if folder.exists() and any(not path.name.startswith(f".{RECIPE_FILE}.") for path in folder.iterdir()):
        raise ValueError(f"{folder} holds other files; the output folder must be new or empty.")


def write_recipe(folder: pathlib.Path, recipe: Mapping[str, Any]) -> None:
    """Writes the recipe to a folder, which is created if necessary."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / RECIPE_FILE, recipe, sort_keys=True)
    upload_changes(folder)  # a bucket that cannot be written is named before the first update


@dataclasses.dataclass(frozen=True)
class Speed:
    """Throughput of an interval, as in the metrics file.

    Attributes:
        tokens_per_second: including padding.
        seconds_per_step: wall time.
        input_wait_share: fraction of that time in which a step waited for its batch; NaN if it is not measured.
    """

    tokens_per_second: float
    seconds_per_step: float
    input_wait_share: float

    def __str__(self) -> str:
        speed = f"{self.tokens_per_second / 1000:.1f}k tokens/s  {self.seconds_per_step:.3g} s/step"
        return speed if math.isnan(self.input_wait_share) else f"{speed}  input wait {self.input_wait_share:.1%}"


def read_metrics(file: pathlib.Path) -> list[dict[str, float]]:
    """The entries of a metrics file, with NaN for null; an incomplete last line is ignored.

    Raises:
        ValueError: a line is invalid.
    """
    if not has_file(file):
        return []
    entries, cure = [], "restore the file from a copy, or remove it to continue without its entries"
    for number, line in enumerate(read_bytes(file, cure, _MAX_METRICS_BYTES).split(b"\n")[:-1], 1):
        if not line:
            continue
        entry = parse_json(line, f"{file}, line {number},", cure=cure)
        entry = {name: math.nan if value is None and name != "step" else value for name, value in entry.items()}
        if not {"step", "loss"} <= entry.keys() or not all(type(value) in (int, float) for value in entry.values()):
            raise ValueError(f"{file}, line {number}, has no step, no loss or a value that is not a number; {cure}.")
        entries.append(entry)
    return entries


def plain_urls(value: Any) -> Any:
    """JSON values with URLs without secrets, which may change between the parts of a run."""
    if isinstance(value, dict):
        return {key: plain_urls(item) for key, item in value.items()}
    return without_secrets(value) if isinstance(value, str) else value


def differences(there: Any, here: Any, where: str = "") -> list[str]:
    """Describes each difference between two nested dicts."""
    if isinstance(there, dict) and isinstance(here, dict):
        keys = sorted({*there, *here})
        nested = [differences(there.get(key), here.get(key), f"{where}.{key}" if where else key) for key in keys]
        return [difference for part in nested for difference in part]
    there, here = plain_urls(there), plain_urls(here)
    return [] if there == here else [f"{where} (there {there!r}, here {here!r})"]


def identity(path: pathlib.Path) -> Any:
    """A hash of a file, or of all files in a folder."""
    if not path.is_dir():
        return {"sha256": sha256(path)}
    files = sorted(file for file in path.rglob("*") if file.is_file())
    content = "".join(f"{file.relative_to(path).as_posix()} {sha256(file)}\n" for file in files)
    return {"sha256": hashlib.sha256(content.encode()).hexdigest()}
