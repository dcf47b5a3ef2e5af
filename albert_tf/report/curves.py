"""Plots of a run: its losses as PNG, all curves as SVG."""

import io
import pathlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_tf.files.installation import install_command
from albert_tf.trainer.run_folder import read_metrics

_NOT_PLOTTED = ("step", "seconds_per_step")
_RATIO = "trust_ratio/"


def plot_losses(metrics_file: str | pathlib.Path, output: str | pathlib.Path, floor: float | None = None) -> None:
    """Plots training and held-out losses of a metrics file.

    Args:
        metrics_file: `metrics.jsonl` of a run.
        output: PNG file to write.
        floor: float. Entropy of single tokens in nats, drawn as a horizontal line.
    """
    figure, axes = _figure(8, 4.5)
    entries = read_metrics(pathlib.Path(metrics_file))
    for name, label in (("masked_lm_loss", "training"), ("val_masked_lm_loss", "held-out")):
        _draw(axes, entries, name, label)
    if floor is not None:
        axes.axhline(floor, linestyle="--", color="grey", label="entropy of single tokens")
    axes.set(xlabel="updates", ylabel="masked-LM loss, nats per token")
    axes.legend()
    figure.savefig(output, dpi=120)


def curves_svg(entries: Sequence[dict[str, float]]) -> str:
    """Plots all logs, with one chart per name for training and held-out values.

    Trust ratios are summarised in one chart: smallest, median and largest over all variables.

    Args:
        entries: lines of `metrics.jsonl`.

    Returns:
        An `<svg>` element for an HTML page. The curve of a log has the id `curve-NAME`.
    """
    matplotlib = _matplotlib()
    entries = [_summarise_ratios(entry) for entry in entries]
    charts = _charts(entries)
    rows = -(-len(charts) // 2)
    # Keep text as text, and make the output deterministic.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "albert_tf"}):
        figure, grid = _figure(11, 2.8 * rows, rows=rows, columns=2)
        for (title, names), axes in zip(charts.items(), grid.flat):
            for name in names:
                _draw(axes, entries, name, _label(name, title))
            axes.set_title(title.replace("_", " "), fontsize=10)
            if len(names) > 1:
                axes.legend(fontsize=8)
        for axes in grid.flat[len(charts) :]:
            axes.set_axis_off()
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    svg = file.getvalue()
    return re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg[svg.index("<svg") :])  # not needed inside HTML


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise ValueError(
            f"Curves need {error.name}, which is not installed; run: {install_command('report')}."
        ) from None
    return matplotlib


def _figure(width: float, height: float, rows: int = 1, columns: int = 1):
    """A figure without pyplot's global state."""
    _matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns)


def _draw(axes, entries: Sequence[dict[str, float]], name: str, label: str) -> None:
    points = [(entry["step"], entry[name]) for entry in entries if name in entry]
    if points:
        (line,) = axes.plot(*zip(*points), marker="o" if len(points) < 40 else None, markersize=3, label=label)
        line.set_gid(f"curve-{name}")


def _charts(entries: Sequence[dict[str, float]]) -> dict[str, list[str]]:
    """The logs of each chart by its title, in order of first occurrence."""
    charts: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for entry in entries for name in entry if name not in _NOT_PLOTTED):
        title = "trust_ratio" if name.startswith(_RATIO) else name.removeprefix("val_")
        charts.setdefault(title, []).append(name)
    return charts


def _label(name: str, title: str) -> str:
    if name.startswith(_RATIO):
        return name.removeprefix(_RATIO)
    return "training" if name == title else "held-out"


def _summarise_ratios(entry: dict[str, float]) -> dict[str, float]:
    ratios = [value for name, value in entry.items() if name.startswith(_RATIO)]
    rest = {name: value for name, value in entry.items() if not name.startswith(_RATIO)}
    if not ratios:
        return rest
    summary = {"smallest": np.min(ratios), "median": np.median(ratios), "largest": np.max(ratios)}
    return {**rest, **{_RATIO + name: float(value) for name, value in summary.items()}}
