"""What `albert-tf` shows without a command: the steps in order, and the next one for the current folder."""

from pathlib import Path

_STEPS = """\
ALBERT from raw text to a served model, step by step:

  1  a vocabulary  albert-tf train-tokenizer corpus/*.txt --output vocabulary \\
                     --vocab-size 8000
  2  examples      albert-tf prepare corpus/*.txt --tokenizer vocabulary \\
                     --output examples
  3  pretraining   albert-tf pretrain recipe.toml --examples examples \\
                     --output runs/mine
  4  fine-tuning   albert-tf finetune runs/mine/model --train train.tsv \\
                     --dev dev.tsv --output runs/task
  5  its scores    albert-tf evaluate runs/task --data test.tsv
  6  prediction    albert-tf predict runs/task "A text."
  7  an export     albert-tf export runs/task --name task
  8  a server      albert-tf serve saved_models

With published weights, begin at step 4: a model's name, such as
albert/albert-base-v2, takes the place of its folder, with the extra [hub].
corpus, train.tsv, dev.tsv, test.tsv and TABLE stand for your own files,
recipe.toml for a recipe such as those in training/recipes.
All commands: albert-tf --help    Check the installation: albert-tf doctor

Next, for what is in this folder:
  """
_FINETUNE = "albert-tf finetune {0} --train TABLE --dev TABLE --output runs/task"
# Files that a step leaves, and the command after it, the last step first; {0} is their folder.
_NEXT = (
    (("saved_models/*/*/saved_model.pb", "saved_models/*/*/model.json"), "albert-tf serve saved_models"),
    (("*/metrics.json", "*/*/metrics.json"), "albert-tf export {0} --name {0.name}"),
    (("*/model/config.json", "*/*/model/config.json", "*/*/*/model/config.json"), _FINETUNE),
    (("*/manifest.json", "*/*/manifest.json"), "albert-tf pretrain recipe.toml --examples {0} --output runs/mine"),
    (("*/model.safetensors",), 'albert-tf predict {0} "A text."'),
    (("*/spiece.model", "*/vocab.txt"), "albert-tf prepare corpus/*.txt --tokenizer {0} --output examples"),
    (("corpus/*.txt",), "albert-tf train-tokenizer {0}/*.txt --output vocabulary --vocab-size 8000"),
)


def next_command(folder: Path) -> str:
    """The next sensible command for the newest files of a folder, with paths relative to it."""
    for patterns, command in _NEXT:
        files = [file for pattern in patterns for file in folder.glob(pattern)]
        if files:
            newest = max(files, key=lambda file: (file.stat().st_mtime, file))
            return command.format(newest.relative_to(folder).parent)
    return _FINETUNE.format("albert/albert-base-v2")


def steps(folder: Path) -> str:
    """The page for a folder, at most 80 columns wide."""
    return _STEPS + next_command(folder).replace(" --output", " \\\n    --output")
