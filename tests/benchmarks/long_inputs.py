"""Time and peak memory of full and of block-local attention, of inference and of a training step on one row.

python -m tests.benchmarks.long_inputs [--preset tiny] [--lengths 512 2048 8192] [--block-size 128]

Each measurement runs in a process of its own; see `memory.py` for what is printed. Full attention keeps some numbers
for each pair of tokens, head and layer: `tiny` needs several gigabytes at 8192 tokens.
"""

import argparse
import itertools
import json

from tests.benchmarks.memory import in_own_process, peak


def measure(options: argparse.Namespace) -> dict[str, float]:
    """One attention at one length, in this process."""
    import numpy as np

    from albert_tf import AlbertConfig, AlbertForSequenceClassification
    from albert_tf.optimizers import Lamb

    (length,), (attention,), (work,) = options.lengths, options.attentions, options.work
    config = AlbertConfig.from_preset(options.preset).replace(
        max_position_embeddings=length, attention=attention, block_size=options.block_size
    )
    model = AlbertForSequenceClassification(config, num_labels=2)
    model.compile(Lamb(1e-3), jit_compile=False)
    ids = np.random.default_rng(0).integers(5, config.vocab_size, (1, length)).astype("int32")
    if work == "inference":
        return peak(lambda: model.predict(ids, verbose=0))
    model.optimizer.build(model.trainable_variables)
    return peak(lambda: model.fit(ids, np.zeros(1, "int32"), verbose=0))


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--lengths", nargs="+", type=int, default=[512, 2048, 8192])
    parser.add_argument("--attentions", nargs="+", default=["full", "block_local"])
    parser.add_argument("--work", nargs="+", default=["inference", "training"])
    parser.add_argument("--block-size", type=int, default=128)
    parser.add_argument("--worker", action="store_true", help="measure in this process")
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(options)))
        return
    print("| | tokens | attention | s | MB added | MB at the peak |\n|---|---|---|---|---|---|")
    size = ["--preset", options.preset, "--block-size", str(options.block_size)]
    for work, length, attention in itertools.product(options.work, options.lengths, options.attentions):
        what = ["--work", work, "--lengths", str(length), "--attentions", attention]
        found = in_own_process("tests.benchmarks.long_inputs", *what, *size)
        numbers = f"{found['seconds']:.2f} | {found['added']:,.0f} | {found['peak']:,.0f}"
        print(f"| {work} | {length} | {attention} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
