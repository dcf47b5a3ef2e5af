"""Every command with every file of the wrong kind: exit code 2 and one sentence that names the file."""

import json
import os
import pathlib
import re

import pytest

import albert_tf
from tests.toy_task import write_classifier, write_mood_table, write_pretrained

from .terminal import mistake

TABLE = "text\tlabel\na good day\tpleasant\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Good and wrong files by name; the wrong ones differ in one way each."""
    folder = tmp_path_factory.mktemp("files")
    write_pretrained(folder / "pretrained")
    write_classifier(folder / "classifier", labels=["gloomy", "pleasant"])
    write_mood_table(folder / "table.tsv", 8, seed=1)
    for name in ["empty_folder", "folder.tsv", "folder.json", "folder.toml", "exported/1", "examples", "other_recipe"]:
        (folder / name).mkdir(parents=True)
    (folder / "exported" / "1" / "saved_model.pb").write_bytes(b"\x08\x01garbage")
    (folder / "examples" / "manifest.json").write_text("[1, 2]")
    (folder / "other_recipe" / "recipe.json").write_text("[1, 2]")
    (folder / "text.txt").write_text("It rained.\nIt stopped.\n\n" * 20)
    binary = bytes(range(256)) * 8
    suffixes = ("tsv", "csv", "jsonl", "txt", "txt.gz", "toml", "json", "model", "safetensors", "h5", "keras", "bin")
    for suffix in suffixes:
        (folder / f"binary.{suffix}").write_bytes(binary)
        (folder / f"empty.{suffix}").write_bytes(b"")
    (folder / "table.parquet").write_bytes(b"PAR1" + binary)
    (folder / "json.tsv").write_text(json.dumps({"text": ["a"], "label": ["b"]}, indent=1))
    (folder / "table.toml").write_text(TABLE)
    (folder / "list.json").write_text("[1, 2]")
    return folder


# One command reads every file of a list; the others read one, to show that they use the same reader.
FOLDERS = ("missing", "table.tsv", "empty_folder", "examples", "binary.bin")
TABLES = ("missing.tsv", "folder.tsv", "empty.tsv", "empty.jsonl", "binary.tsv", "binary.csv", "binary.jsonl")
TABLES += ("json.tsv", "table.parquet", "pretrained", "text.txt")
TEXTS = ("missing.txt", "empty_folder", "empty.txt", "binary.txt", "binary.txt.gz", "empty.txt.gz")
RECIPES = ("missing.toml", "folder.toml", "empty.toml", "binary.toml", "table.toml", "pretrained", "list.json")
CHECKPOINTS = (*FOLDERS, "exported", "empty.h5", "binary.h5", "binary.keras", "binary.safetensors", "text.txt")
NEW_FOLDERS = ("table.tsv", "table.tsv/below", "classifier")
FINETUNE = ("finetune", "pretrained", "--train", "table.tsv", "--dev", "table.tsv", "--output", "tuned")
EXPORT = ("export", "classifier", "--name", "a", "--output", "new")
EVALUATE = ("evaluate", "classifier", "--data", "table.tsv")
# The call, the argument that is replaced by each of the wrong files, and these.
CALLS = {
    "train-tokenizer": (("train-tokenizer", "text.txt", "--output", "new"), "text.txt", TEXTS),
    "train-tokenizer --heldout": (
        *(("train-tokenizer", "text.txt", "--output", "new", "--vocab-size", 40, "--heldout", "other"), "other"),
        ("missing.txt", "binary.txt"),
    ),
    "train-tokenizer --output": (("train-tokenizer", "text.txt", "--output", "new"), "new", NEW_FOLDERS),
    "prepare": (("prepare", "text.txt", "--output", "new"), "text.txt", ("empty_folder", "binary.txt.gz")),
    "prepare --tokenizer": (
        *(("prepare", "text.txt", "--output", "new", "--tokenizer", "vocabulary"), "vocabulary"),
        ("missing", "empty_folder", "binary.model", "empty.model", "empty.txt", "binary.txt", "table.parquet"),
    ),
    "prepare --output": (("prepare", "text.txt", "--output", "new"), "new", ("table.tsv", "table.tsv/below")),
    "pretrain": (("pretrain", "recipe.toml", "--output", "new"), "recipe.toml", RECIPES),
    "report": (("report", "run"), "run", ("missing", "examples", "other_recipe", "pretrained")),
    "finetune": (FINETUNE, "pretrained", ("empty_folder", "exported")),
    "finetune --train": (FINETUNE, "table.tsv", TABLES),
    "finetune --output": (FINETUNE, "tuned", (*NEW_FOLDERS, "other_recipe")),
    "evaluate": (EVALUATE, "classifier", ("table.tsv", "binary.bin", "pretrained")),
    "evaluate --data": (EVALUATE, "table.tsv", ("missing.tsv", "binary.jsonl")),
    "evaluate --predictions": ((*EVALUATE, "--predictions", "out"), "out", ("folder.tsv", "table.tsv/below", "no/out")),
    "predict": (("predict", "classifier", "a text"), "classifier", ("missing", "exported")),
    "convert": (("convert", "source", "new", "--to", "google"), "source", CHECKPOINTS),
    "convert to": (("convert", "classifier", "new", "--to", "huggingface"), "new", NEW_FOLDERS),
    "export": (EXPORT, "classifier", ("examples", "exported")),
    "export --output": (EXPORT, "new", ("table.tsv", "table.tsv/below")),
    "info": (("info", "a.json"), "a.json", ("missing.json", "folder.json", "empty.json", "binary.json", "list.json")),
}
CASES = [(name, wrong) for name, (_, _, every) in CALLS.items() for wrong in every]


@pytest.mark.parametrize(("name", "wrong"), CASES, ids=[" ".join(case) for case in CASES])
def test_one_sentence_names_the_file(files, name, wrong, monkeypatch):
    monkeypatch.chdir(files)
    call, replaced, _ = CALLS[name]
    sentence = mistake(*(wrong if argument == replaced else argument for argument in call))
    print(sentence)
    assert wrong.removesuffix("/below") in sentence
    assert re.search(r"[;.] ", sentence.removeprefix("albert-tf: ")), "the cure"
    assert "Errno" not in sentence
    assert not (files / "new").exists() or not any((files / "new").iterdir())


@pytest.mark.parametrize(
    "call",
    [
        ("evaluate", "classifier", "--data", "secret.tsv"),
        ("pretrain", "secret.toml", "--output", "new"),
        ("info", "secret.json"),
        ("train-tokenizer", "secret.txt", "--output", "new"),
        ("finetune", "secret", "--train", "table.tsv", "--dev", "table.tsv", "--output", "new"),
    ],
    ids=lambda call: call[0],
)
def test_a_file_without_permission(files, call, monkeypatch):
    monkeypatch.chdir(files)
    (secret,) = (argument for argument in call if "secret" in argument)
    path = files / secret
    path.write_text("[]") if path.suffix else path.mkdir(exist_ok=True)
    mistake(*call)  # imports what is needed while Python's own files can be read
    path.chmod(0)
    folders = {files, *files.parents, *pathlib.Path(albert_tf.__file__).parents}
    user = os.geteuid()
    modes = {folder: folder.stat().st_mode for folder in folders if folder.stat().st_uid == user}
    try:
        if user == 0:  # whom no permission stops
            for folder, mode in modes.items():
                folder.chmod(mode | 0o755)
            os.seteuid(65534)
        sentence = mistake(*call)
    finally:
        os.seteuid(user)
        for folder, mode in modes.items():
            folder.chmod(mode)
    assert secret in sentence
    assert "permission" in sentence.lower()
