"""What `gpu.py` measures of this package's commands on TensorFlow: whole runs in a folder of their own.

Each function gets the fields of an AlbertConfig, the rows and the length of a batch, and the command line; it returns
the seconds of a step in each interval, the seconds until the first of these began, and the tokens of a step.

Letters: B batch, L sequence.
"""

import json
import pathlib
import random
import tempfile
import time
from typing import NamedTuple

NOVEL = pathlib.Path(__file__).parents[2] / "training/sample_data/novels/Stevenson_Treasure_Island_1883.txt"
WARM_UP = 2  # intervals that are not counted
SHORTEST = 10  # tokens of a text


class Measured(NamedTuple):
    """What a run took."""

    seconds: list[float]
    setup: float
    tokens: int


def pretrain(config: dict, batch: int, length: int, options, strategy: str = "one_device") -> Measured:
    """Updates of `albert-tf pretrain` with LAMB."""
    from albert_tf.data import PrepareOptions, prepare
    from albert_tf.trainer import Recipe, pretrain

    intervals = WARM_UP + options.rounds
    training = {
        **{"num_train_steps": intervals * options.steps, "batch_size": batch, "log_every": options.steps},
        **dict.fromkeys(("evaluate_every", "save_every"), intervals * options.steps),
        **{"strategy": strategy, "dtype_policy": "mixed_bfloat16"},
    }
    with tempfile.TemporaryDirectory() as folder:
        examples, run = pathlib.Path(folder, "examples"), pathlib.Path(folder, "run")
        prepare(PrepareOptions(inputs=(NOVEL,), output_dir=examples, split_sentences=True, max_seq_length=length))
        optimizer = {"name": "lamb", "learning_rate": 1e-4, "num_warmup_steps": 1}
        recipe = {"model": config, "data": {"examples": str(examples)}, "optimizer": optimizer, "training": training}
        begun = time.perf_counter()
        pretrain(Recipe.model_validate(recipe), run, show_progress=False)
        return _measured(run, options, time.perf_counter() - begun)


def pretrain_mirrored(config: dict, batch: int, length: int, options) -> Measured:
    """The same under MirroredStrategy, on all GPUs."""
    return pretrain(config, batch, length, options, "mirrored")


def finetune(config: dict, batch: int, length: int, options) -> Measured:
    """Updates of `albert-tf finetune` with texts of 10 to L tokens."""
    from albert_tf.trainer import FinetuneOptions, finetune

    chance, words = random.Random(0), NOVEL.read_text(encoding="utf-8").split()
    with tempfile.TemporaryDirectory() as folder:
        start, train, dev, run = (pathlib.Path(folder, name) for name in ("start", "train.tsv", "dev.tsv", "run"))
        save_classifier(config, start)
        intervals = WARM_UP + options.rounds
        for file, count in ((train, batch * intervals * options.steps), (dev, batch)):
            rows = ["text\tlabel"]
            for _ in range(count):  # a word is 1.3 tokens on average, and longer texts are cut
                first, size = chance.randrange(len(words) - length), chance.randint(SHORTEST, length) * 10 // 13
                rows.append(f"{' '.join(words[first : first + size]).replace(chr(34), '')}\t{chance.randrange(2)}")
            file.write_text("\n".join(rows) + "\n", encoding="utf-8")
        begun = time.perf_counter()
        finetune(
            FinetuneOptions(
                task="sequence_classification",
                **{"pretrained": start, "train": train, "dev": dev, "output": run, "max_length": length},
                **{"batch_size": batch, "epochs": 1, "evaluations_per_epoch": intervals, "keep": "last"},
                **{"dtype_policy": "mixed_bfloat16", "learning_rate": 1e-5, "head_dropout": 0.0},
            )
        )
        return _measured(run, options, time.perf_counter() - begun)


def _measured(run: pathlib.Path, options, total: float) -> Measured:
    """What the metrics of a run say of its intervals."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if "seconds_per_step" in row][WARM_UP:]
    seconds = [row["seconds_per_step"] for row in rows]
    tokens = round(rows[-1]["tokens_per_second"] * seconds[-1])
    return Measured(seconds, total - options.steps * sum(seconds), tokens)


def save_classifier(config: dict, folder: pathlib.Path) -> None:
    """Writes a classifier with new weights and the English vocabulary."""
    import albert_tf

    model = albert_tf.AlbertForSequenceClassification(albert_tf.AlbertConfig(**config), labels=["0", "1"])
    model.save_pretrained(folder)
    albert_tf.AlbertTokenizer.english().save_pretrained(folder)


def saved_model(config: dict, batch: int, length: int, options, **form: bool) -> Measured:
    """Calls of the signature `tokens` of an exported SavedModel."""
    import tensorflow as tf

    from albert_tf.export import export_saved_model

    with tempfile.TemporaryDirectory() as folder:
        save_classifier(config, pathlib.Path(folder, "model"))
        report = export_saved_model(pathlib.Path(folder, "model"), folder, "saved", precision="bfloat16", **form)
        begun = time.perf_counter()
        loaded = tf.saved_model.load(report.folder)
        ids = tf.random.stateless_uniform([batch, length], [0, 1], 5, config["vocab_size"], tf.int32)
        inputs = {"input_ids": ids, "attention_mask": tf.ones_like(ids), "token_type_ids": tf.zeros_like(ids)}
        seconds = []
        for _ in range(WARM_UP + options.rounds):
            started = time.perf_counter()
            for _ in range(options.steps):
                outputs = loaded.signatures["tokens"](**inputs)
            tf.nest.flatten(outputs)[0].numpy()  # waits for the device
            seconds.append((time.perf_counter() - started) / options.steps)
        kept = seconds[WARM_UP:]
        return Measured(kept, time.perf_counter() - begun - options.steps * sum(kept), batch * length)


def saved_model_xla(config: dict, batch: int, length: int, options) -> Measured:
    """The same of one that XLA compiles."""
    return saved_model(config, batch, length, options, xla=True)


def saved_model_flash(config: dict, batch: int, length: int, options) -> Measured:
    """The same with cuDNN's attention."""
    return saved_model(config, batch, length, options, flash_attention=True)


_EXPORTS = (saved_model, saved_model_xla, saved_model_flash)
COMMANDS = {work.__name__: work for work in (pretrain, pretrain_mirrored, finetune, *_EXPORTS)}
