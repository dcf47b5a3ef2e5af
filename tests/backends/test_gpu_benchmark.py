"""Runs the benchmark for GPUs with a tiny model on this processor."""

import pathlib
import subprocess
import sys

import keras
import pytest

ROOT = pathlib.Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(keras.backend.backend() != "jax", reason="our side of it runs on JAX")


def run(folder, *arguments) -> list[list[str]]:
    """The cells of the rows that it writes."""
    command = [sys.executable, "-m", "tests.benchmarks.gpu", "--sizes", "tiny", "--output", str(folder), *arguments]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    (written,) = folder.glob("*.md")
    assert written.read_text(encoding="utf-8") == printed
    rows = [line for line in printed.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_our_rows_and_the_reason_for_a_missing_one(tmp_path):
    rows = run(tmp_path, "--sides", "ours", "keras_hub", "--turns", "1", "--minutes", "5", "--profile")
    assert [row[:4] for row in rows[:2]] == [["ours", "tiny", work, "2 x 16"] for work in ("inference", "training")]
    for row in rows[:2]:
        low, high = map(float, row[5].split(" - "))
        assert 0 < low <= float(row[4]) <= high
        assert float(row[6].replace(",", "")) == pytest.approx(32 / float(row[4]) * 1e3, rel=0.2)
    (missing,) = rows[2:]
    assert missing[0] == "keras_hub"
    assert "No module named 'keras_hub'" in missing[-1]
    (profile,) = tmp_path.glob("*.profile.txt")
    assert "training 2 x 16: kernels took" in profile.read_text(encoding="utf-8")


def test_what_does_not_fit_into_the_time_is_skipped(tmp_path):
    rows = run(tmp_path, "--sides", "ours", "--turns", "1", "--minutes", "0.7")
    assert [row[0] for row in rows] == ["ours"]
    assert rows[0][-1].startswith("skipped")
