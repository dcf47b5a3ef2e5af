"""What a checkpoint costs training: the time that a save blocks, and that training loses while a thread writes it.

    python -m tests.benchmarks.checkpoint_saves [--presets tiny base_v2] [--rows 32 8]

Stretches of steps with a save before them and without one take turns. The share is that of a save in a run that saves
at the default interval.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from albert_tf import AlbertConfig, AlbertForPreTraining
from albert_tf.optimizers import Lamb
from albert_tf.trainer.recipe import TrainingRecipe
from albert_tf.trainer.run_state import TrainingState
from tests.benchmarks.random_batches import random_batches


def measure(preset: str, rows: int, arguments: argparse.Namespace) -> None:
    """Prints a line."""
    config, training = AlbertConfig.from_preset(preset), TrainingRecipe(num_train_steps=100000, batch_size=rows)
    model = AlbertForPreTraining(config)
    model.compile(Lamb(1e-6))
    data = random_batches(config.vocab_size, rows, arguments.length)

    def steps() -> float:
        begun = time.perf_counter()
        model.fit(data, steps_per_epoch=arguments.steps, shuffle=False, verbose=0)
        return time.perf_counter() - begun

    with tempfile.TemporaryDirectory() as folder:
        state = TrainingState(Path(folder), model, training, {})
        steps()
        blocked, with_save, without = [], [], []
        for _ in range(arguments.rounds):
            begun = time.perf_counter()
            state.save()
            blocked.append(time.perf_counter() - begun)
            with_save.append(blocked[-1] + steps())
            state.writer.wait()
            without.append(steps())
        size = sum(file.stat().st_size for file in Path(folder).glob("*/*")) / training.keep_checkpoints / 2**20
    step = statistics.median(without) / arguments.steps
    costs = statistics.median(a - b for a, b in zip(with_save, without, strict=True))
    blocks, interval = statistics.median(blocked), training.save_every * step
    print(
        f"{preset}, {rows} x {arguments.length}: {size:.0f} MiB, a step {1000 * step:.0f} ms; a save blocks "
        f"{blocks:.3f} s, {blocks / interval:.3%} of {training.save_every} steps, and costs {costs:.3f} s in all, "
        f"{costs / interval:.3%}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what checkpoints cost training.")
    parser.add_argument("--presets", nargs="+", default=["tiny", "base_v2"])
    parser.add_argument("--rows", nargs="+", type=int, default=[32, 8], help="of a batch, for each preset")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=10, help="of a stretch")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    for preset, rows in zip(arguments.presets, arguments.rows, strict=True):
        measure(preset, rows, arguments)


if __name__ == "__main__":
    main()
