"""The curves of a run, as SVG."""

import io
import re
from collections.abc import Sequence

import numpy as np

from albert_tf.files.installation import install_command

_NOT_PLOTTED = ("step", "seconds_per_step")
_RATIO = "trust_ratio/"


def curves_svg(entries: Sequence[dict[str, float]]) -> str:
    """Plots all logs, with one chart per name for training and held-out values.

    Trust ratios are summarised in one chart: smallest, median and largest over all variables.

    Args:
        entries: lines of `metrics.jsonl`.

    Returns:
        An `<svg>` element for an HTML page. The curve of a log has the id `curve-NAME`.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure  # without pyplot's global state
    except ModuleNotFoundError as error:
        raise ValueError(
            f"Curves need {error.name}, which is not installed; run: {install_command('report')}."
        ) from None
    entries = [_summarise_ratios(entry) for entry in entries]
    charts = _charts(entries)
    rows, file = -(-len(charts) // 2), io.StringIO()
    # Keep text as text, and make the output deterministic.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "albert_tf"}):
        figure = Figure(figsize=(11, 2.8 * rows), layout="constrained")
        grid = figure.subplots(rows, 2).flat
        for (title, names), axes in zip(charts.items(), grid):
            for name in names:
                _draw(axes, entries, name, _label(name, title))
            axes.set_title(title.replace("_", " "), fontsize=10)
            if len(names) > 1:
                axes.legend(fontsize=8)
        for axes in grid[len(charts) :]:
            axes.set_axis_off()
        figure.savefig(file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    svg = file.getvalue()
    return re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg[svg.index("<svg") :])  # not needed inside HTML


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
