"""Measures the share of a step in which training waits for its data.

    python -m tests.benchmarks.input_wait training/sample_data/novels/*.txt

Trains `tiny` at batch 32 x 128 on examples from disk and on examples made on the fly, as `albert-tf pretrain` does, and
prints what its `metrics.jsonl` says, first interval left out.
"""

import argparse
import tempfile
from pathlib import Path

from albert_tf.config import AlbertConfig
from albert_tf.data import PrepareOptions, prepare
from albert_tf.report import write_report
from albert_tf.tokenization import train_sentencepiece
from albert_tf.trainer import parse_recipe, pretrain


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the input wait of pretraining.")
    parser.add_argument("texts", nargs="+", help="text files, running text with paragraphs")
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--intervals", type=int, default=6)
    parser.add_argument("--steps", type=int, default=50, help="of an interval")
    parser.add_argument("--steps-per-execution", type=int, default=1)
    arguments = parser.parse_args()
    training = {
        "num_train_steps": arguments.intervals * arguments.steps,
        "batch_size": arguments.batch_size,
        "steps_per_execution": arguments.steps_per_execution,
        **dict.fromkeys(("log_every", "evaluate_every", "save_every"), arguments.steps),
    }
    texts = {"inputs": tuple(arguments.texts), "max_seq_length": arguments.length, "split_sentences": True}
    with tempfile.TemporaryDirectory() as temporary:
        vocabulary = Path(temporary) / "vocabulary"
        train_sentencepiece(
            [Path(text) for text in arguments.texts],
            vocabulary,
            AlbertConfig.from_preset(arguments.preset).vocab_size,
        )
        for kind in ("examples", "documents"):
            folder = Path(temporary) / kind
            prepare(PrepareOptions(output_dir=folder, format=kind, document_gap=2, tokenizer=vocabulary, **texts))
            values = {
                "model": {"preset": arguments.preset},
                "data": {kind: str(folder)},
                "optimizer": {"name": "lamb", "learning_rate": 1e-3, "num_warmup_steps": 10},
                "training": training,
            }
            run = Path(temporary) / f"run-{kind}"
            pretrain(parse_recipe(values), run, show_progress=False)
            speed = write_report(run).speed
            print(
                f"{arguments.preset}, {kind:9}: input wait {speed.input_wait_share:.3%} of a step, "
                f"{1000 * speed.seconds_per_step:.0f} ms a step, {speed.tokens_per_second:,.0f} tokens/s",
                flush=True,
            )


if __name__ == "__main__":
    main()
