"""Measures fewer calls of the shared block: a classifier, and shallower ones with and without it as their teacher.

    python -m tests.benchmarks.distillation runs/quickstart/pretraining/model train.tsv dev.tsv runs/distillation \
        --layers 3 --epochs 5 --label-column author

Each seed trains four classifiers: the teacher with all calls of the pretrained model; with fewer calls, one that starts
from the pretrained model, one that starts from the teacher and learns from labels alone, and a student. All have the
same options, and all scores are those of the last epoch. A run that was interrupted goes on.
"""

import argparse
import json
import os
import statistics
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pretrained", type=Path)
    parser.add_argument("train", type=Path)
    parser.add_argument("dev", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--layers", type=int, required=True, help="calls of the shallower models")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--max-length", type=int, default=64)
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--label-column", default="label")
    arguments = vars(parser.parse_args())
    pretrained, output, layers = (arguments.pop(name) for name in ("pretrained", "output", "layers"))
    reports = {}
    for seed in range(arguments.pop("seeds")):
        teacher = output / f"teacher-{seed}"
        for name, options in {
            "teacher": {"pretrained": pretrained},
            "from the pretrained model": {"pretrained": pretrained, "num_hidden_layers": layers},
            "from the teacher, labels alone": {"pretrained": teacher, "num_hidden_layers": layers},
            "student": {"teacher": teacher, "num_hidden_layers": layers},
        }.items():
            folder = output / f"{name.replace(', ', '_').replace(' ', '_')}-{seed}"
            reports.setdefault(name, []).append(finetuned(folder, seed=seed, **options, **arguments))
    updates, predictions = milliseconds(
        {name: runs[0].folder for name, runs in reports.items()}, arguments["max_length"]
    )
    print("| model | calls | score | of each seed | update, ms | 32 texts, ms |\n|---|---|---|---|---|---|")
    for name, runs in reports.items():
        scores = [run.score_by_evaluation[-1] for run in runs]
        calls = json.loads((runs[0].folder / "config.json").read_text(encoding="utf-8"))["num_hidden_layers"]
        each = ", ".join(f"{score:.4f}" for score in scores)
        times = f"{updates[name]:.1f} | {predictions[name]:.1f}"
        print(f"| {name} | {calls} | {statistics.mean(scores):.4f} | {each} | {times} |")


def finetuned(output: Path, **options):
    from albert_tf.trainer import FinetuneOptions, finetune

    return finetune(FinetuneOptions(output=output, keep="last", **options))


def milliseconds(folders: dict[str, Path], length: int, rounds: int = 15) -> tuple[dict[str, float], ...]:
    """Least times of an update with 32 texts of this length, and of their prediction, all models in turns."""
    import keras
    import numpy as np

    from albert_tf import AlbertForSequenceClassification

    models = {name: AlbertForSequenceClassification.from_pretrained(folder) for name, folder in folders.items()}
    for name, model in models.items():
        model.compile(keras.optimizers.SGD(0.0), teacher=models["teacher"] if name == "student" else None)
    ids, labels = np.random.default_rng(0).integers(5, 1000, (32, length)).astype("int32"), np.zeros(32, "int32")
    steps = (lambda model: model.train_on_batch(ids, labels)), (lambda model: model.predict_on_batch(ids))
    times = tuple({name: [] for name in models} for _ in steps)
    for _ in range(rounds):
        for name, model in models.items():
            for step, found in zip(steps, times):
                begun = time.perf_counter()
                step(model)
                found[name].append(time.perf_counter() - begun)
    return tuple({name: 1000 * min(seconds) for name, seconds in found.items()} for found in times)


if __name__ == "__main__":
    main()
