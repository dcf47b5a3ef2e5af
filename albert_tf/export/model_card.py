"""The description of an exported model: `model.json` for programs, `MODEL.md` for people."""

import pathlib
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf
import tensorflow_text

from albert_tf.files.atomic import atomic_write
from albert_tf.files.installation import version
from albert_tf.files.json import optional_json
from albert_tf.inference.folder import ModelFolder
from albert_tf.tasks.sequence_classification.settings import Threshold
from albert_tf.tasks.settings import RECIPE_FILE, REPORT_FILE, files_in, write_settings
from albert_tf.tasks.table import SETTINGS_FILE

TEXT_FILE = "MODEL.md"
# Not from the metadata of distributions, which a checkout that is not installed lacks.
_VERSIONS = {
    "albert-tf": version(),
    "tensorflow": tf.__version__,
    "tensorflow-text": tensorflow_text.__version__,
    "keras": keras.__version__,
}


def write_model_card(
    folder: pathlib.Path,
    loaded: ModelFolder,
    name: str,
    source: pathlib.Path,
    license: str | None,
    form: Mapping[str, Any],
) -> None:
    """Describes an export in two files, the last that are written to its folder.

    Args:
        folder: of the exported version, complete but for these files.
        loaded: the model.
        name: its name.
        source: the folder that it comes from, whose recipe and scores are published.
        license: such as `"Apache-2.0"`; None if it is unknown.
        form: `precision`, `frozen`, `xla`, `lengths` and `largest_difference` of the export.
    """
    recipe, report = (optional_json(source / name) for name in (RECIPE_FILE, REPORT_FILE))
    card = {
        "name": name,
        "files": files_in(folder),
        "license": license,
        **form,
        "config": loaded.model.config.to_dict(),
        "parameters": int(sum(variable.value.shape.num_elements() for variable in loaded.model.weights)),
        "scores": report.get("scores"),
        "evaluated_on": report.get("dev_examples"),
        "recipe": recipe,  # it has digests of its files, no paths
        "versions": _VERSIONS,
    }
    atomic_write(folder / TEXT_FILE, _text({**loaded.settings.entries(), **card}).encode())
    write_settings(folder, loaded.settings, **card)


def _text(card: dict[str, Any]) -> str:
    config, scores = card["config"], card["scores"]
    layers = config["num_hidden_layers"]
    facts = {
        "Task": card["task"].replace("_", " "),
        "Labels": ", ".join(card.get("labels") or ()) or "none",
        **({"Threshold": _shown(card["threshold"])} if card.get("threshold") is not None else {}),
        "Longest input": f"{card['max_length']} tokens"
        + (f"; longer texts in windows, joined by their {card['windows']}" if card.get("windows") else ""),
        "Network": f"{layers} layer{'' if layers == 1 else 's'} of {config['hidden_size']} units",
        "Parameters": f"{card['parameters']:,}",
        "Precision": f"{card['precision']}; differs by at most {card['largest_difference']:.1e} from the Keras model",
        "Graph": f"weights are {'constants' if card['frozen'] else 'variables'}{', XLA' if card['xla'] else ''}",
        "Size": f"{sum(file['bytes'] for file in card['files'].values()) / 1e6:.1f} MB",
        "Licence": card["license"] or "not stated",
    }
    lines = [f"# {card['name']}", "", "An ALBERT model, exported with albert_tf.", "", "| | |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in facts.items()]
    if scores:
        lines += ["", f"## Scores on {card['evaluated_on']:,} examples", "", "| score | value |", "|---|---|"]
        names = {"f1": f"f1 of {scores['positive_label']}"} if scores.get("positive_label") else {}
        lines += [
            f"| {names.get(key, key)} | {value:.4f} |" for key, value in scores.items() if isinstance(value, float)
        ]
    if card["recipe"]:
        lines += ["", "## Fine-tuning", "", "| option | value |", "|---|---|"]
        lines += [
            f"| `{key}` | {value} |" for key, value in card["recipe"].items() if isinstance(value, str | int | float)
        ]
    return "\n".join([*lines, "", f"`{SETTINGS_FILE}` has all of this, and the checksums of all files.", ""])


def _shown(threshold: Threshold) -> str:
    if isinstance(threshold, Mapping):
        return ", ".join(f"{label} {value:.4f}" for label, value in threshold.items())
    return f"{threshold:.4f}"
