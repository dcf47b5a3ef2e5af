"""What is damaged and read: one table, a line for each format.

Damage to TensorFlow's files breaks their checksums: entries of an index that are damaged under right checksums end the
process in TensorFlow's reader, as `SECURITY.md` says. Not among the targets is the graph of a SavedModel, which is a
program that TensorFlow runs: `predict` takes one only where a folder holds no weights, and `saved_models/README.md`
says to load only those that one trusts.
"""

import functools
import gzip
import json
import pathlib
import random
import shutil
import tempfile
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import h5py
import sentencepiece

from albert_tf import AlbertTokenizer, checkpoints
from albert_tf.data.manifest import Manifest
from albert_tf.files.text import read_lines
from albert_tf.metrics import classification_scores
from albert_tf.report import write_report
from albert_tf.trainer import load_recipe
from albert_tf.trainer.finetune_report import FinetuneReport
from albert_tf.trainer.run_folder import read_metrics
from tests.fuzz.damage import (
    Damage,
    anything,
    in_gzip,
    in_zip,
    json_lines,
    json_values,
    safetensors_header,
    toml_values,
    words,
)

ROOT = pathlib.Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
FORMATS = "hf_for_pretraining_formats"
ALLOWANCE = 1_500_000  # bytes: instructions, names and error messages weigh more than the tensors of a small file
SECONDS = 20


class Target(NamedTuple):
    """A format.

    Attributes:
        files: a folder of `tests/golden`, or a function that makes the files in an empty folder.
        name: the file that is damaged.
        damage: how; a third of the inputs is damaged as `anything` does.
        read: reads the folder.
        memory: most bytes of memory for each byte of the files, beyond `ALLOWANCE`.
    """

    files: str | Callable[[pathlib.Path], Any]
    name: str
    damage: Damage
    read: Callable[[pathlib.Path], Any] = checkpoints.read
    memory: int = 2


# === Files that are not in tests/golden ===


def _in_newer_hdf5(folder: pathlib.Path) -> None:
    preset = GOLDEN / "keras_hub_text_classifier" / "preset"
    shutil.copyfile(preset / "config.json", folder / "config.json")
    for name in ("model.weights.h5", "task.weights.h5"):
        with h5py.File(preset / name) as old, h5py.File(folder / name, "w", libver="latest") as new:
            old.visititems(lambda path, node, new=new: _copy(path, node, new))


def _copy(path: str, node: Any, new: h5py.File) -> None:
    copy = new.create_dataset(path, data=node[()]) if isinstance(node, h5py.Dataset) else new.require_group(path)
    copy.attrs.update(node.attrs)


def _hub_module(folder: pathlib.Path) -> None:
    (folder / "variables").mkdir()
    (folder / "assets").mkdir()
    for file in (GOLDEN / "M1_small").glob("model.ckpt.*"):
        shutil.copyfile(file, folder / "variables" / file.name.replace("model.ckpt", "variables"))
    shutil.copyfile(GOLDEN / "M1_small" / "albert_config.json", folder / "assets" / "albert_config.json")
    (folder / "saved_model.pb").write_bytes(b"\x08\x01")


def _recipe(folder: pathlib.Path) -> None:
    shutil.copyfile(ROOT / "training" / "recipes" / "quickstart.toml", folder / "recipe.toml")


def _run_folder(folder: pathlib.Path) -> None:
    options = {"task": "classification", "learning_rate": 1e-4, "num_epochs": 3, "labels": ["a", "b"]}
    (folder / "recipe.json").write_text(json.dumps(options))
    report = FinetuneReport(
        folder=folder,
        scores=classification_scores([0, 1, 1], [0, 1, 0], ["a", "b"]),
        main_score="accuracy",
        score_by_evaluation=(0.5, 2 / 3),
        kept_evaluation=2,
        cut_examples=1,
        train_examples=30,
        dev_examples=3,
        steps=20,
        trained_parameters=100,
        notes=("40 texts were cut.",),
        seconds=1.5,
    )
    (folder / "metrics.json").write_text(report.model_dump_json())


def _metrics(folder: pathlib.Path) -> None:
    entries = [{"step": step, "loss": 1 / step, "examples_per_second": 10.0} for step in range(1, 50)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def _prepared(folder: pathlib.Path) -> None:
    from albert_tf.data import PrepareOptions, prepare

    with tempfile.TemporaryDirectory() as place:
        text = pathlib.Path(place, "text.txt")
        text.write_text("one line of text\nanother line of it\n\na second document\nthat has two lines\n\n" * 20)
        tokenizer = GOLDEN / "keras_hub_tokenizer" / "spm.model"
        options = {"max_seq_length": 32, "max_predictions_per_seq": 5, "num_shards": 1}
        prepare(PrepareOptions(inputs=[text], output_dir=folder, tokenizer=tokenizer, **options))


def _pieces(folder: pathlib.Path) -> None:
    ids = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": ["[CLS]", "[SEP]", "[MASK]"]}
    text = iter([f"text number {number} of them, for a small vocabulary" for number in range(50)])
    with (folder / "spiece.model").open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=text,
            model_writer=file,
            vocab_size=40,
            minloglevel=9,
            normalization_rule_name="identity",
            **ids,
        )


def _vocabulary(folder: pathlib.Path) -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(chr, range(97, 123)), "##a", "##b", "한", "##국"]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "model_max_length": 512}))


def _compressed_text(folder: pathlib.Path) -> None:
    (folder / "text.txt.gz").write_bytes(gzip.compress("A line of text, 한국어.\n".encode() * 500))


# === Readers ===


def _tokenize(folder: pathlib.Path) -> list[int]:
    return AlbertTokenizer.from_pretrained(folder).encode("A text of 1,000 words, 한국어.")


def _lines(folder: pathlib.Path) -> int:
    return sum(len(line.text) for line in read_lines(folder / "text.txt.gz"))


def _read_metrics(folder: pathlib.Path) -> Any:
    return read_metrics(folder / "metrics.jsonl")


def _file(name: str) -> Callable[[pathlib.Path], Any]:
    return lambda folder: checkpoints.read(folder / name)


TARGETS: dict[str, Target] = {
    "safetensors": Target("hf_for_pretraining", "model.safetensors", safetensors_header),
    "half precision": Target(f"{FORMATS}/bf16", "model.safetensors", safetensors_header),
    "index of shards": Target(f"{FORMATS}/sharded", "model.safetensors.index.json", json_values),
    "shard": Target(f"{FORMATS}/sharded", "model-00002-of-00004.safetensors", safetensors_header),
    "config.json": Target("hf_for_pretraining", "config.json", json_values),
    "albert_config.json": Target("M1_small", "albert_config.json", json_values),
    "TensorFlow index": Target("M1_small", "model.ckpt.index", anything),
    "TensorFlow index, groups": Target("M2_groups", "model.ckpt.index", anything),
    "TensorFlow data": Target("M1_small", "model.ckpt.data-00000-of-00001", anything),
    "TF Hub module": Target(_hub_module, "variables/variables.index", anything),
    "graph beside weights": Target(_hub_module, "saved_model.pb", anything),
    "PyTorch zip": Target(f"{FORMATS}/zip", "pytorch_model.bin", in_zip(data_pkl=anything)),
    "PyTorch stream": Target(f"{FORMATS}/legacy", "pytorch_model.bin", anything),
    "PyTorch stream, old names": Target(f"{FORMATS}/old_names", "pytorch_model.bin", anything),
    "HDF5": Target("keras_hub_text_classifier/preset", "model.weights.h5", words),
    "HDF5, newer": Target(_in_newer_hdf5, "model.weights.h5", words),
    "HDF5 of a head": Target(_in_newer_hdf5, "task.weights.h5", words),
    "config of a preset": Target("keras_hub_text_classifier/preset", "config.json", json_values),
    ".keras": Target(
        "keras_hub_backbone", "model.keras", in_zip(config_json=json_values, weights_h5=words), _file("model.keras")
    ),
    "recipe": Target(_recipe, "recipe.toml", toml_values, lambda folder: load_recipe(folder / "recipe.toml"), 100),
    "recipe of a run": Target(_run_folder, "recipe.json", json_values, write_report, 100),
    "metrics of a run": Target(_metrics, "metrics.jsonl", json_lines, _read_metrics, 100),
    "results of a run": Target(_run_folder, "metrics.json", json_values, write_report, 100),
    "manifest": Target(_prepared, "manifest.json", json_values, Manifest.load, 20),
    "SentencePiece model": Target(_pieces, "spiece.model", anything, _tokenize, 60),
    "vocab.txt": Target(_vocabulary, "vocab.txt", anything, _tokenize, 60),
    "tokenizer_config.json": Target(_vocabulary, "tokenizer_config.json", json_values, _tokenize, 60),
    # Lines may be of 16 MiB, and a megabyte of one letter is a kilobyte of file.
    "gzip": Target(_compressed_text, "text.txt.gz", in_gzip, _lines, 4000),
}


@functools.cache
def sound(target: str) -> bytes:
    """The file that a target damages, as it was written."""
    with tempfile.TemporaryDirectory() as place:
        return (copy_of(target, pathlib.Path(place)) / TARGETS[target].name).read_bytes()


def damaged(target: str, seed: int) -> bytes:
    """One input; the same for the same seed."""
    chance = random.Random(f"{target} {seed}")
    return (anything if chance.random() < 1 / 3 else TARGETS[target].damage)(sound(target), chance)


def copy_of(target: str, place: pathlib.Path) -> pathlib.Path:
    """The target's folder, made writable; of a golden folder, the files alone."""
    folder = place / target.replace(" ", "_")
    folder.mkdir()
    files = TARGETS[target].files
    if not isinstance(files, str):
        files(folder)
        return folder
    for file in (GOLDEN / files).iterdir():
        if file.is_file() and file.suffix not in (".npz", ".md"):
            shutil.copyfile(file, folder / file.name)
    return folder


def read_damaged(target: str, content: bytes, folder: pathlib.Path) -> str:
    """Reads the folder with the damaged file in it; returns `read` or `refused`, and raises where neither is true."""
    (folder / TARGETS[target].name).write_bytes(content)
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            TARGETS[target].read(folder)
        outcome = "read"
    except ValueError as error:
        if "\n" in str(error) or len(str(error)) > 2000:
            raise RuntimeError(f"an error that is no sentence: {str(error)[:300]!r}") from error
        outcome = "refused"
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    if peak > TARGETS[target].memory * size + ALLOWANCE:
        raise RuntimeError(f"{peak:,} bytes of memory for {size:,} bytes of files")
    return outcome
