"""Predicts with an exported model; only needs TensorFlow and tensorflow-text.

python saved_models/predict.py saved_models/NAME "a text" ["another text" ...]
python saved_models/predict.py saved_models/NAME "first of a pair" --pair "second of it"
python saved_models/predict.py saved_models/NAME "a question" --pair "the passage with the answer"
"""

import argparse
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
import tensorflow_text  # noqa: F401  # registers the operations that the SavedModel calls


def find_version(folder: pathlib.Path) -> pathlib.Path:
    """The newest version in a model's folder, or the folder itself if it is a version."""
    versions = sorted((path for path in folder.glob("*") if path.name.isdecimal()), key=lambda path: int(path.name))
    for path in [folder, *reversed(versions)]:
        if (path / "saved_model.pb").is_file():
            return path
    raise ValueError(f"{folder} has no exported model of TensorFlow; `albert-tf predict` takes ONNX folders.")


def call(signature, texts: list[str], pairs: list[str]) -> dict[str, tf.Tensor]:
    """Calls a signature with texts, and pairs if there are any."""
    expected = set(signature.structured_input_signature[1])
    names = ("question", "context") if "question" in expected else ("text", "text_pair")
    given = {names[0]: texts, **({names[1]: pairs} if pairs else {})}
    if set(given) != expected:
        cure = "pass --pair TEXT for each text" if len(expected) == 2 else "omit --pair"
        raise ValueError(f"The model takes {' and '.join(sorted(expected))}, not {' and '.join(given)}; {cure}.")
    try:
        return signature(**{name: tf.constant(value) for name, value in given.items()})
    except tf.errors.InvalidArgumentError as error:
        assertion = str(error).partition("assertion failed: [")[2].partition("]\n")[0]
        raise ValueError(assertion or str(error).splitlines()[-1]) from None


def describe(signatures, outputs: dict[str, tf.Tensor], row: int) -> list[str]:
    """The outputs for one text, as lines."""
    values = {name: value[row].numpy() for name, value in outputs.items()}
    if "pieces" in values:
        masks = zip(values["pieces"], values["probabilities"])  # [M, K] each
        return [f"{value:.4f}  {piece.decode()}" for mask in masks for piece, value in zip(*mask) if piece]
    if "probabilities" in values and "labels" in signatures:
        names = signatures["labels"]()["labels"].numpy()
        scores = [f"{value:.4f}  {name.decode()}" for name, value in zip(names, values["probabilities"])]
        if "label" in values:
            return [f"label: {values['label'].decode()}", *scores]
        return [f"labels: {', '.join(name.decode() for name in values['labels'] if name) or 'none'}", *scores]
    if "entity_label" in values:
        entities = zip(values["entity_label"], values["entity_text"], values["entity_score"])
        return [f"{score:.4f}  {label.decode()}: {text.decode()}" for label, text, score in entities if label]
    return [f"{name}: {_format(value)}" for name, value in values.items()]


def _format(value) -> str:
    return value.decode() if isinstance(value, bytes) else f"{value:.4f}" if value.ndim == 0 else f"shape {value.shape}"


def main() -> None:
    """Parses the command line, runs the model and prints its outputs."""
    parser = argparse.ArgumentParser(description="Predicts with an exported model.")
    parser.add_argument("model", type=pathlib.Path, help="folder of the model, or of one of its versions")
    parser.add_argument("texts", nargs="+", help="texts; for a masked-LM model, with [MASK] for one piece")
    parser.add_argument("--pair", action="append", default=[], help="second text, one for each text")
    arguments = parser.parse_args()
    if arguments.pair and len(arguments.pair) != len(arguments.texts):
        raise ValueError(f"There must be one --pair for each text. Received: {len(arguments.pair)}.")
    restored = tf.saved_model.load(str(find_version(arguments.model)))  # keep a reference: it owns the variables
    signatures = restored.signatures
    name = "sentence_order" if arguments.pair and "sentence_order" in signatures else "serving_default"
    outputs = call(signatures[name], arguments.texts, arguments.pair)
    for row, text in enumerate(arguments.texts):
        print(text)
        for line in describe(signatures, outputs, row):
            print(f"    {line}")


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError, tf.errors.OpError) as error:
        print(f"predict.py: {str(error).splitlines()[0]}", file=sys.stderr)
        sys.exit(2)
