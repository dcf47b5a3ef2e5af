"""A picture of a run: its losses over updates, as PNG."""

import pathlib

from albert_tf.trainer.callbacks import read_metrics


def plot_losses(metrics_file: str | pathlib.Path, output: str | pathlib.Path, floor: float | None = None) -> None:
    """Draws training and held-out losses of a metrics file.

    Args:
        metrics_file: `metrics.jsonl` of a run.
        output: PNG file to write.
        floor: float. A level to mark as the entropy of single tokens, in nats.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    entries = read_metrics(pathlib.Path(metrics_file))
    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    for name, label in (("masked_lm_loss", "training"), ("val_masked_lm_loss", "held-out")):
        points = [(entry["step"], entry[name]) for entry in entries if name in entry]
        if points:
            axes.plot(*zip(*points), marker="o" if len(points) < 40 else None, label=label)
    if floor is not None:
        axes.axhline(floor, linestyle="--", color="grey", label="entropy of single tokens")
    axes.set(xlabel="updates", ylabel="masked-LM loss, nats per token")
    axes.legend()
    figure.savefig(output, dpi=120)
    pyplot.close(figure)
