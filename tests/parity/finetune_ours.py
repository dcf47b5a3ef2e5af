"""Records what `albert-tf finetune` would train on, for finetune_theirs.py: start, batches, labels and options.

    python tests/parity/finetune_ours.py MODEL --train TRAIN --output FOLDER --recipe RECIPE [--seed 1]

FOLDER/start has the pretrained weights and the new head, as the run with these options starts with them.
"""

import argparse
import itertools
import json
import pathlib

import keras
import numpy as np

from albert_tf import models
from albert_tf.data.finetuning.batches import steps_per_epoch, training_dataset
from albert_tf.files.json import read_toml
from albert_tf.inference.folder import facts_of
from albert_tf.tasks.learned import learned_task
from albert_tf.tasks.table import TASKS
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.trainer import FinetuneOptions


def main() -> None:
    """Writes start/ and batches.npz, an array of each input and label per step."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    for name in ("train", "output", "recipe"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    paths = {"pretrained": given.model, "train": given.train, "dev": given.train, "output": given.output}
    options = FinetuneOptions(**{**read_toml(given.recipe, ""), **paths, "seed": given.seed})
    task = learned_task(options.task)(None, options.settings)
    train = task.read(options.train)
    keras.utils.set_random_seed(options.seed)
    kind = next(getattr(models, row.model) for row in TASKS if row.name == options.task)
    rates = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), options.dropout)
    rates["classifier_dropout_prob"] = options.head_dropout
    model = kind.from_pretrained(
        given.model,
        new_head=True,
        **task.model_arguments(train),
        **{name: rate for name, rate in rates.items() if rate is not None},
    )
    tokenizer = AlbertTokenizer.from_pretrained(given.model)
    length = options.max_length or model.config.max_position_embeddings
    learnt = {"max_length": length, **task.learnt_settings(train)}
    settings = task.settings.with_facts(**{**facts_of(model), "task": options.task, **learnt})
    examples = learned_task(options.task)(tokenizer, settings).training_examples(train)
    steps = steps_per_epoch(len(examples.lengths), options.batch_size) * options.epochs
    arrays = {}
    for step, (inputs, labels) in enumerate(
        itertools.islice(training_dataset(examples, options.batch_size, options.seed), steps)
    ):
        batch = {**inputs, **(labels if isinstance(labels, dict) else {"labels": labels})}
        arrays |= {f"{step}/{name}": np.asarray(value) for name, value in batch.items()}
    for part in (model, tokenizer):
        part.save_pretrained(given.output / "start")
    (given.output / "start/recipe.json").write_text(
        json.dumps(options.model_copy(update=learnt).model_dump(mode="json"))
    )
    np.savez(given.output / "batches.npz", steps=steps, **arrays)
    print(f"{steps} batches in {given.output}")


if __name__ == "__main__":
    main()
