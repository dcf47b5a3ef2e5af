"""A self-contained HTML page about a run: curves, throughput, results, configuration."""

import dataclasses
import html
import json
import math
import pathlib
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from albert_tf.files.atomic import atomic_write, check_output
from albert_tf.files.json import finite, has_file, read_json
from albert_tf.files.urls import local_copy, location
from albert_tf.report.curves import curves_svg
from albert_tf.report.label_tables import label_tables
from albert_tf.trainer.finetune_report import FinetuneReport, read_report
from albert_tf.trainer.run_folder import METRICS_FILE, RECIPE_FILE, REPORT_FILE, RESULTS_FILE, Speed, read_metrics

REPORT_PAGE = "report.html"
_LABEL_TABLES = ("scores.by_label.", "scores.confusion.")  # have a section of their own
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1, h2 { font-weight: 600; } h2 { margin-top: 2.5rem; }
svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 13px; } th, td { padding: 2px 10px; border-bottom: 1px solid #ddd; }
th { text-align: left; } td.number { text-align: right; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
"""
# Keeps browsers from loading anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@dataclasses.dataclass(frozen=True)
class RunReport:
    """A page and its main numbers.

    Attributes:
        file: the page.
        step: step of the last log entry.
        total: `num_train_steps`; None for fine-tuning.
        speed: medians over intervals except the first, in which the step is compiled; None if there are none yet.
        results: results of a finished run, else empty.
    """

    file: pathlib.Path
    step: int
    total: int | None
    speed: Speed | None
    results: dict[str, Any]

    @property
    def throughput(self) -> dict[str, str]:
        """The speed as rows of a table."""
        if self.speed is None:
            return {}
        waited = self.speed.input_wait_share
        return {
            "tokens per second": f"{self.speed.tokens_per_second:,.0f}",
            "seconds per step": f"{self.speed.seconds_per_step:.4g}",
            "input wait, fraction of a step": "not measured" if math.isnan(waited) else f"{waited:.2%}",
        }


def write_report(run: str | pathlib.Path, output: str | pathlib.Path | None = None) -> RunReport:
    """Writes a page about a run, which may be in progress.

    Args:
        run: path or URL of the folder of a pretraining or fine-tuning run.
        output: the page; by default `report.html` in that folder.

    Raises:
        ValueError: the folder is not a run folder, one of its files is damaged, or matplotlib is not installed.
    """
    page = location(run) / REPORT_PAGE if output is None else location(output)
    check_output("output", page, *(location(run) / name for name in (RECIPE_FILE, METRICS_FILE, REPORT_FILE)))
    run = local_copy(run, {RECIPE_FILE, METRICS_FILE, REPORT_FILE, RESULTS_FILE}.__contains__)
    recipe, entries = _read_recipe(run), read_metrics(run / METRICS_FILE)
    total = flat(recipe).get("training.num_train_steps")
    tuned = read_report(run) if has_file(run / REPORT_FILE) else None
    report = RunReport(
        file=page,
        step=int(entries[-1]["step"]) if entries else 0,
        total=total if isinstance(total, int) else None,
        speed=_median_speed(entries),
        results=_results(run, tuned),
    )
    results = ((key, value) for key, value in flat(report.results).items() if not key.startswith(_LABEL_TABLES))
    sections = {
        "Curves": curves_svg(entries) if entries else "<p>No interval has been logged yet.</p>",
        "Throughput": _table(report.throughput.items(), "No interval has been measured yet."),
        "Results": _table(results, "The run is not finished."),
        **_labels(tuned and tuned.scores),
        "Configuration": _table(flat(recipe).items()),
    }
    atomic_write(report.file, _page(run.resolve().name, report, sections).encode())
    return report


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flattens nested dicts to keys such as `section.key`.

    Example:

    >>> flat({"training": {"seed": 1}, "labels": ["a"]})
    {'training.seed': 1, 'labels': ['a']}
    """
    flattened: dict[str, Any] = {}
    for key, value in values.items():
        flattened.update(flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value})
    return flattened


def _read_recipe(run: pathlib.Path) -> dict[str, Any]:
    if not run.is_dir() or not has_file(run / RECIPE_FILE):
        raise ValueError(
            f"{run} is not a run folder (no {RECIPE_FILE}); pass the --output folder of `albert-tf pretrain` or "
            "`albert-tf finetune`."
        )
    return read_json(run / RECIPE_FILE, cure="restore it from a copy")


def _results(run: pathlib.Path, tuned: FinetuneReport | None) -> dict[str, Any]:
    if has_file(run / RESULTS_FILE):
        return read_json(run / RESULTS_FILE, cure="remove it and run the same command again")
    return {} if tuned is None else tuned.model_dump(exclude={"folder", "finished_before"})


def _labels(scores: Any) -> dict[str, str]:
    by_label = getattr(scores, "by_label", None)
    return {"Labels": label_tables(by_label, getattr(scores, "confusion", {}))} if by_label else {}


def _median_speed(entries: list[dict[str, float]]) -> Speed | None:
    names = [field.name for field in dataclasses.fields(Speed)]
    measured = [entry for entry in entries if all(name in entry for name in names)]
    measured = measured[1:] or measured
    return Speed(*(statistics.median(entry[name] for entry in measured) for name in names)) if measured else None


def _table(rows: Iterable[tuple[str, Any]], without: str = "") -> str:
    """Names and values; `without` is what the page says if there are none."""
    cells = (f"<tr><th>{html.escape(str(name))}</th><td>{html.escape(_shown(value))}</td></tr>" for name, value in rows)
    return f"<table>{table}</table>" if (table := "".join(cells)) else f"<p>{without}</p>"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return "undefined" if math.isnan(value) else f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(finite(value), ensure_ascii=False)


def _page(name: str, report: RunReport, sections: Mapping[str, str]) -> str:
    title, of_all = html.escape(name), "" if report.total is None else f" of {report.total:,}"
    body = "\n".join(f"<h2>{heading}</h2>\n{content}" for heading, content in sections.items())
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style></head>\n"
        f"<body>\n<h1>{title}</h1>\n<p>{report.step:,}{of_all} updates.</p>\n{body}\n</body>\n</html>\n"
    )
