"""Asks an exported model about texts; needs TensorFlow and tensorflow-text, nothing else.

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
    """The newest version in the folder of a model, or the folder itself where it is a version."""
    versions = sorted((path for path in folder.glob("*") if path.name.isdecimal()), key=lambda path: int(path.name))
    for path in [folder, *reversed(versions)]:
        if (path / "saved_model.pb").is_file():
            return path
    raise ValueError(f"The folder must hold an exported model. Received: {folder}; see `albert-tf export --help`.")


def ask(signature, texts: list[str], pairs: list[str]) -> dict[str, tf.Tensor]:
    """Calls a signature with the texts under the names that it asks for."""
    wanted = set(signature.structured_input_signature[1])
    given = {"text": texts, **({"text_pair": pairs} if pairs else {})}
    if set(given) != wanted:
        cure = "give --pair TEXT for each text" if "text_pair" in wanted else "leave out --pair"
        raise ValueError(f"The model must get {' and '.join(sorted(wanted))}. Received: {' and '.join(given)}; {cure}.")
    try:
        return signature(**{name: tf.constant(value) for name, value in given.items()})
    except tf.errors.InvalidArgumentError:
        raise ValueError(f"Each text must hold [MASK] once. Received: {texts}; write it for one piece.") from None


def describe(signatures, outputs: dict[str, tf.Tensor], row: int) -> list[str]:
    """What the model says about one text, in lines."""
    if "probabilities" not in outputs:
        return [f"{name}: {values[row].numpy():.4f}" for name, values in outputs.items()]
    is_classifier = "labels" in signatures
    names = signatures["labels"]()["labels"] if is_classifier else outputs["pieces"][row]
    shares = outputs["probabilities"][row].numpy().tolist()
    lines = [f"{share:.4f}  {name.decode()}" for name, share in zip(names.numpy().tolist(), shares)]
    return [f"label: {outputs['label'][row].numpy().decode()}", *lines] if is_classifier else lines


def main() -> None:
    """Reads the command line, asks the model, prints its answers."""
    parser = argparse.ArgumentParser(description="Asks an exported model about texts.")
    parser.add_argument("model", type=pathlib.Path, help="folder of the model, or of one of its versions")
    parser.add_argument("texts", nargs="+", help="texts; for a masked-LM model with [MASK] in place of a piece")
    parser.add_argument("--pair", action="append", default=[], help="second text, one for each text")
    arguments = parser.parse_args()
    if arguments.pair and len(arguments.pair) != len(arguments.texts):
        raise ValueError(f"There must be one --pair for each text. Received: {len(arguments.pair)}.")
    restored = tf.saved_model.load(str(find_version(arguments.model)))  # owns the variables: keep it
    signatures = restored.signatures
    name = "sentence_order" if arguments.pair and "sentence_order" in signatures else "serving_default"
    outputs = ask(signatures[name], arguments.texts, arguments.pair)
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
