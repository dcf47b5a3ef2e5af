"""Runs the benchmark for GPUs with a tiny model on this processor."""

import json
import pathlib
import subprocess
import sys

import keras
import pytest

from tests.benchmarks.gpu import WORKS, table

ROOT = pathlib.Path(__file__).parents[2]
on_jax = pytest.mark.skipif(keras.backend.backend() != "jax", reason="of the sides on JAX")
on_tensorflow = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="of the sides on TensorFlow")


def run(folder, *arguments) -> list[dict]:
    """The rows that it writes."""
    command = [sys.executable, "-m", "tests.benchmarks.gpu", "--sizes", "tiny", "--turns", "1", "--output", str(folder)]
    printed = subprocess.run([*command, *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    (lines,), (written,) = (list(folder.glob(f"*.{kind}")) for kind in ("jsonl", "md"))
    assert printed == f"{lines.read_text(encoding='utf-8')}\n{written.read_text(encoding='utf-8')}"
    rows = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    assert table(rows) == written.read_text(encoding="utf-8")
    return rows


@on_jax
def test_our_rows_and_the_reason_for_a_missing_one(tmp_path):
    card, *rows, missing = run(tmp_path, "--sides", "ours", "keras_hub", "--minutes", "5", "--profile")
    assert card["flops"] > 1e8
    assert [row["work"] for row in rows] == list(WORKS["ours"])
    for row in rows:
        assert {"side": "ours", "size": "tiny", "batch": 2, "length": 32, "tokens": 64}.items() <= row.items()
        assert min(row["seconds"]) > 0
    assert missing["side"] == "keras_hub"
    assert "No module named 'keras_hub'" in missing["note"]
    (profile,) = tmp_path.glob("*.profile.txt")
    assert "training 2 x 32: kernels took" in profile.read_text(encoding="utf-8")


@on_jax
def test_what_does_not_fit_into_the_time_is_skipped(tmp_path):
    _, row = run(tmp_path, "--sides", "ours", "--minutes", "0.7")
    assert row["side"] == "ours"
    assert row["note"].startswith("skipped")


@on_tensorflow
@pytest.mark.exhaustive
def test_commands_and_the_loop_on_tensorflow(tmp_path):
    rows = run(tmp_path, "--sides", "ours_tf", "ours_tf_in_a_loop", "--minutes", "30")
    rows = [row for row in rows if row["side"] != "peak"]  # is measured with JAX
    works = [*(("ours_tf", work) for work in WORKS["ours_tf"]), ("ours_tf_in_a_loop", "training")]
    assert [(row["side"], row["work"]) for row in rows] == works
    assert all(min(row["seconds"]) > 0 and 2 * 10 <= row["tokens"] <= 64 for row in rows)


def test_ratios_are_those_of_medians_over_all_turns():
    def row(side: str, work: str, *seconds: float) -> dict:
        sizes = {"size": "base", "batch": 256, "length": 128, "tokens": 32768, "setup": 17.2, "note": "a note"}
        return {"side": side, "work": work, "seconds": seconds, **sizes}

    rows = [
        {"device": "NVIDIA H100", "size": 8192, "flops": 7e14, "versions": "JAX 0"},
        *(row("ours", "training", 0.05, 0.04), row("ours_tf", "training", 0.05), row("ours", "training", 0.04)),
        *(row("ours", "pretraining", 0.05), row("ours_tf", "pretrain", 0.1), row("ours_tf", "finetune", 0.1)),
        {"side": "torch", "size": "base", "note": "ended early: a | b"},
    ]
    lines = table(rows).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")][1:]
    assert cells[0][:7] == ["ours", "base", "training", "256 x 128", "40.0", "40.0 - 50.0", "819,200"]
    assert cells[0][9:] == ["", "17", "a note"]
    assert float(cells[2][9]) > 0  # of pretraining, from the table of programs
    assert [row[7] for row in cells] == ["1.000", "0.800", "1.000", "0.500", "", ""]
    assert cells[1][8] == "49%"
    assert cells[-1] == ["torch", "base", *[""] * 9, "ended early: a / b"]
