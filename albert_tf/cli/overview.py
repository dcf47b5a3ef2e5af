"""What `albert-tf` shows without a command: the steps in order, and the next one for the current folder."""

import shlex
from pathlib import Path

_STEPS = (
    ("a vocabulary", "train-tokenizer corpus/*.txt --output vocabulary --vocab-size 8000"),
    ("examples", "prepare corpus/*.txt --tokenizer vocabulary --output examples"),
    ("pretraining", "pretrain recipe.toml --examples examples --output runs/mine"),
    ("fine-tuning", "finetune runs/mine/model --train train.tsv --dev dev.tsv --output runs/task"),
    ("its scores", "evaluate runs/task --data test.tsv"),
    ("prediction", 'predict runs/task "A text."'),
    ("an export", "export runs/task --name task"),
    ("a server", "serve saved_models"),
)
_FINETUNE = "albert-tf finetune {0} --train TABLE --dev TABLE --output runs/task"
_PREDICT = 'albert-tf predict {0} "A text."'
_SUFFIXES = (".tsv", ".csv", ".jsonl", ".parquet")
_PRETRAINED = ('"AlbertForPreTraining"', '"AlbertForMaskedLM"')  # in config.json
# Files that a step leaves, and the command after it, the last step first; {0} is their folder.
_NEXT = (
    (("saved_models/*/*/saved_model.pb", "saved_models/*/*/model.json"), "albert-tf serve saved_models"),
    (("*/metrics.json", "*/*/metrics.json"), "albert-tf export {0} --name {0.name}"),
    (("*/model/config.json", "*/*/model/config.json", "*/*/*/model/config.json"), _FINETUNE),
    (("*/manifest.json", "*/*/manifest.json"), "albert-tf pretrain recipe.toml --examples {0} --output runs/mine"),
    (("*/model.safetensors",), _PREDICT),
    (("*/spiece.model", "*/vocab.txt"), "albert-tf prepare corpus/*.txt --tokenizer {0} --output examples"),
    (("corpus/*.txt",), "albert-tf train-tokenizer {0}/*.txt --output vocabulary --vocab-size 8000"),
)
_START = _FINETUNE.format("albert/albert-base-v2")


def next_command(folder: Path) -> str:
    """The next sensible command for what is in a folder, with paths relative to it."""
    for patterns, command in _NEXT:
        files = [file for pattern in patterns for file in sorted(folder.glob(pattern)) if not _is_failure(file)]
        newest_first = sorted(files, key=lambda file: -file.stat().st_mtime)
        found = [file.relative_to(folder).parent for file in newest_first]
        if found and "recipe.toml" in command:
            recipes = (file.name for file in sorted(folder.glob("*.toml")) if file.name != "pyproject.toml")
            command = command.replace("recipe.toml", next(recipes, "recipe.toml"))
        if found:
            is_start = command == _PREDICT and _is_pretrained(folder / found[0])
            return _with_tables((_FINETUNE if is_start else command).format(found[0]), folder)
    return _with_tables(_START, folder)


def _is_failure(file: Path) -> bool:
    """Whether the file is the report of a run that learnt nothing."""
    return file.name == "metrics.json" and "Nothing was learnt" in file.read_text("utf-8", "replace")


def _with_tables(command: str, folder: Path) -> str:
    """Fills in the tables that the folder has; TABLE stays where it has none."""
    tables = [file.name for file in sorted(folder.iterdir()) if file.suffix.lower() in _SUFFIXES and file.is_file()]
    dev = next((name for name in tables for part in ("dev", "val", "test") if part in name.lower()), "TABLE")
    others = [name for name in tables if name != dev]
    train = next((name for name in others if "train" in name.lower()), next(iter(others), "TABLE"))
    train, dev = map(shlex.quote, (train, dev))
    return command.replace("--train TABLE", f"--train {train}").replace("--dev TABLE", f"--dev {dev}")


def _is_pretrained(folder: Path) -> bool:
    """Whether the folder's config.json names a model of a pretraining objective."""
    file = folder / "config.json"
    return file.is_file() and any(name in file.read_text("utf-8", "replace") for name in _PRETRAINED)


def steps(folder: Path) -> str:
    """The page for a folder, at most 80 columns wide."""
    width = max(len(name) for name, _ in _STEPS)
    lines = [
        f"  {number}  {name:{width}}  {_wrap(f'albert-tf {command}', width + 7)}"
        for number, (name, command) in enumerate(_STEPS, 1)
    ]
    return "\n".join(
        [
            "ALBERT from raw text to a served model, step by step:",
            "",
            *lines,
            "",
            "With published weights, begin at step 4: a model's name, such as",
            "albert/albert-base-v2, takes the place of its folder, with the extra [hub].",
            "corpus, train.tsv, dev.tsv, test.tsv and TABLE stand for your own files,",
            "recipe.toml for a recipe such as those in training/recipes.",
            "All commands: albert-tf --help    Check the installation: albert-tf doctor",
            "",
            "Next, for what is in this folder:",
            f"  {_wrap(next_command(folder), 2)}",
        ]
    )


def _wrap(command: str, indent: int) -> str:
    """The command with its last options on a line of their own if it would reach column 80."""
    if indent + len(command) <= 80:
        return command
    first, *options = command.split(" --")
    lines = [first]
    for option in (f"--{option}" for option in options):
        if indent + len(lines[-1]) + len(option) + 3 > 80:  # with a space before it and " \\" after it
            lines.append(f"  {option}")
        else:
            lines[-1] += f" {option}"
    return f" \\\n{' ' * indent}".join(lines)
