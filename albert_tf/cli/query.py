"""`albert-tf query`: asks a running server."""

import http.client
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from albert_tf.cli.serve import KEY_VARIABLE
from albert_tf.cli.tables import print_table

NAME = "query"
SHOWN = 5
_HERE = "http://127.0.0.1:8501"


def run(
    model: Annotated[str, typer.Argument(help=f"Name of a model at {_HERE}, or http://HOST:PORT/v1/models/NAME.")],
    texts: Annotated[list[str], typer.Argument(help="Texts, or questions.")],
    pair: Annotated[
        list[str] | None, typer.Option(help="Second text or context, one for each text; or the choices of one context.")
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait.", min=0.001)] = 30.0,
) -> None:
    """Prints the answers of a model that `albert-tf serve` or TensorFlow Serving serves.

    Example: albert-tf query task "A text to label."

    Example: albert-tf query http://10.0.0.5:8501/v1/models/qa "Who wrote it?" --pair "She wrote it in 1811."
    """
    url = _url(model)
    metadata = _metadata(url, timeout)
    compares = "sentence_embedding" in metadata["serving_default"]["outputs"] and pair is not None
    signature, rows = _rows(metadata, texts, None if compares else pair)
    if compares:
        answers = list(_cosines(url, texts, pair or [], timeout))
    else:
        body = {"signature_name": signature, "inputs": rows}
        answers = _by_row(_call(f"{url}:predict", body, timeout)["outputs"], metadata[signature]["outputs"])
    labels = _labels(url, timeout) if "labels" in metadata else []
    table = [
        line for text, answer in zip(texts, answers, strict=True) for line in _lines({"text": text} | answer, labels)
    ]
    num_text_columns = sum(isinstance(value, str) for value in table[0].values())
    columns = [name.removeprefix("entity_") for name in table[0]]
    if len(columns) > 2:  # of a regression, the score is all there is
        columns = ["probability" if name == "score" else name for name in columns]
    print_table("", columns, [[_cell(value) for value in row.values()] for row in table], num_text_columns)


def _metadata(url: str, timeout: float) -> dict[str, Any]:
    """The signatures of the model by name."""
    reply = _call(f"{url}/metadata", None, timeout)
    try:
        signatures = reply["metadata"]["signature_def"]["signature_def"]
    except (KeyError, TypeError):
        raise ValueError(f"{url} did not describe a model; pass the address of a server of models.") from None
    if "serving_default" not in signatures:
        raise ValueError(f"{url} has no signature serving_default; export the model with `albert-tf export`.")
    return signatures


def _url(model: str) -> str:
    if not model.startswith(("http://", "https://")):
        if "/" in model or ":" in model:
            raise ValueError(
                f"`model` must be a name, or begin with http:// and end in /v1/models/NAME. Received: {model}."
            )
        model = f"{_HERE}/v1/models/{model}"
    model = model.rstrip("/")
    if not re.search(r"/v1/models/[^/:]+(/versions/\d+)?$", model):
        raise ValueError(f"`model` must be a name, or end in /v1/models/NAME. Received: {model}.")
    return model


def _rows(metadata: dict, texts: list[str], pair: list[str] | None) -> tuple[str, dict[str, Any]]:
    """The signature that takes what is given, and its inputs."""
    names = ("serving_default", "sentence_order")
    fitting = [
        name for name in names if name in metadata and (len(metadata[name]["inputs"]) == 2) == (pair is not None)
    ]
    if not fitting:
        wanted = " and ".join(sorted(metadata["serving_default"]["inputs"]))
        raise ValueError(f"The model takes {wanted}; pass {'no ' if pair else ''}`--pair`.")
    inputs = sorted(metadata[fitting[0]]["inputs"], key=lambda name: name not in ("text", "question"))
    if pair is None:
        return fitting[0], {inputs[0]: texts}
    if "choices" in inputs:
        return fitting[0], {"context": texts, "choices": [pair] * len(texts)}
    if len(pair) != len(texts):
        raise ValueError(f"`--pair` must be given once for each text. Received: {len(texts)} texts, {len(pair)} pairs.")
    return fitting[0], dict(zip(inputs, (texts, pair)))


def _call(url: str, body: dict | None, timeout: float) -> dict[str, Any]:
    headers = {"content-type": "application/json"}
    if key := os.environ.get(KEY_VARIABLE):
        headers["authorization"] = f"Bearer {key}"
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=timeout) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        cure = f" Set {KEY_VARIABLE}." if error.code == 401 else ""
        raise ValueError(f"{url} answered {error.code}: {_reason(error)}{cure}") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise ValueError(f"{url} could not be reached ({reason}); start the server with `albert-tf serve`.") from None
    except ValueError:
        raise ValueError(f"{url} did not answer with JSON; pass the address of a server of models.") from None


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError, TypeError):
        return error.reason


def _by_row(outputs: Any, described: dict) -> Iterator[dict[str, Any]]:
    """The answers of each row, texts first; a single output has no name in the reply."""
    columns = outputs if len(described) > 1 else dict.fromkeys(described, outputs)
    names = sorted(columns, key=lambda name: described[name]["dtype"] != "DT_STRING")
    for row in zip(*(columns[name] for name in names)):
        yield dict(zip(names, row))


def _cosines(url: str, texts: list[str], pair: list[str], timeout: float) -> Iterator[dict[str, Any]]:
    if len(pair) != len(texts):
        raise ValueError(f"`--pair` must be given once for each text. Received: {len(texts)} texts, {len(pair)} pairs.")
    reply = _call(f"{url}:predict", {"inputs": {"text": [*texts, *pair]}}, timeout)["outputs"]
    vectors = reply["sentence_embedding"] if isinstance(reply, dict) else reply
    for text, first, second in zip(pair, vectors, vectors[len(texts) :]):
        norm = sum(x * x for x in first) ** 0.5 * sum(y * y for y in second) ** 0.5
        yield {"compared with": text, "cosine": sum(x * y for x, y in zip(first, second)) / norm if norm else 0.0}


def _labels(url: str, timeout: float) -> list[str]:
    """The labels in the order of the probabilities; empty if the server refuses a request without inputs."""
    try:
        return _call(f"{url}:predict", {"signature_name": "labels", "inputs": {}}, timeout)["outputs"]
    except ValueError:
        return []


def _lines(row: dict[str, Any], labels: list[str]) -> Iterator[dict[str, Any]]:
    """The lines of a row: its most probable labels or pieces or, if the model finds such, its entities; no padding."""
    if labels and "probabilities" in row:
        ranked = sorted(zip(labels, row["probabilities"]), key=lambda answer: -answer[1])
        if "labels" in row:
            ranked = [answer for answer in ranked if answer[0] in row["labels"]] or [("none", "")]
        for number, (label, probability) in enumerate(ranked[:SHOWN]):
            yield {"text": "" if number else row["text"], "label": label, "probability": probability}
        return
    if "pieces" in row:
        masks = enumerate(zip(row["pieces"], row["probabilities"]), 1)
        answers = [(f"{mask}", *answer) for mask, pair in masks for answer in list(zip(*pair))[:SHOWN] if answer[0]]
        for number, (mask, piece, probability) in enumerate(answers):
            yield {"text": "" if number else row["text"], "mask": mask, "piece": piece, "probability": probability}
        return
    if "entity_text" not in row:
        yield row
        return
    found = [index for index, text in enumerate(row["entity_text"]) if text]
    if not found:
        yield {name: "" if isinstance(value, list) else value for name, value in row.items()}
    for index in found:
        rest = "" if index else row["text"]
        yield {name: value[index] if isinstance(value, list) else rest for name, value in row.items()}


def _cell(value: Any) -> str:
    if isinstance(value, list):
        more = ", ..." if len(value) > SHOWN else ""
        return ", ".join(map(_cell, value[:SHOWN])) + more
    return f"{value:.4f}" if isinstance(value, float) else str(value)
