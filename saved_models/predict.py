"""Predicts with an exported model; only needs TensorFlow and tensorflow-text.

python saved_models/predict.py saved_models/NAME "a text" ["another text" ...]
python saved_models/predict.py saved_models/NAME "first of a pair" --pair "second of it"
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
    raise ValueError(f"{folder} has no exported model; see `albert-tf export --help`.")


def call(signature, texts: list[str], pairs: list[str]) -> dict[str, tf.Tensor]:
    """Calls a signature with texts, and pairs if there are any."""
    expected = set(signature.structured_input_signature[1])
    given = {"text": texts, **({"text_pair": pairs} if pairs else {})}
    if set(given) != expected:
        cure = "pass --pair TEXT for each text" if "text_pair" in expected else "omit --pair"
        raise ValueError(f"The model takes {' and '.join(sorted(expected))}, not {' and '.join(given)}; {cure}.")
    try:
        return signature(**{name: tf.constant(value) for name, value in given.items()})
    except tf.errors.InvalidArgumentError:
        raise ValueError(f"Each text must contain [MASK] once. Received: {texts}.") from None


def describe(signatures, outputs: dict[str, tf.Tensor], row: int) -> list[str]:
    """The outputs for one text, as lines."""
    if "probabilities" not in outputs:
        return [f"{name}: {values[row].numpy():.4f}" for name, values in outputs.items()]
    is_classifier = "labels" in signatures
    names = signatures["labels"]()["labels"] if is_classifier else outputs["pieces"][row]
    probabilities = outputs["probabilities"][row].numpy().tolist()
    lines = [f"{value:.4f}  {name.decode()}" for name, value in zip(names.numpy().tolist(), probabilities)]
    return [f"label: {outputs['label'][row].numpy().decode()}", *lines] if is_classifier else lines


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
