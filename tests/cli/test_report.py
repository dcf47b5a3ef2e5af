"""Proves that `albert-tf report` writes one page about a run of either kind and refuses what is none."""

import pytest

from albert_tf.trainer import FinetuneOptions, finetune
from albert_tf.trainer.run_folder import read_metrics
from tests.toy_task import write_mood_table, write_pretrained

from .terminal import mistake, output_of


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A fine-tuning of two epochs."""
    folder = tmp_path_factory.mktemp("tuned")
    write_pretrained(folder / "pretrained")
    table = write_mood_table(folder / "few.tsv", 40, seed=3) or folder / "few.tsv"
    values = {"pretrained": folder / "pretrained", "train": table, "dev": table, "output": folder / "run"}
    return finetune(FinetuneOptions(**values, epochs=2, batch_size=16))


@pytest.mark.exhaustive
def test_a_fine_tuning_has_its_page(tuned):
    printed = output_of("report", tuned.folder)
    entries = read_metrics(tuned.folder / "metrics.jsonl")
    assert [entry["step"] for entry in entries] == [3, 6]
    assert [entry["val_accuracy"] for entry in entries] == list(tuned.score_by_evaluation)
    assert f"{entries[1]['tokens_per_second']:,.0f}" in printed
    assert f"{entries[1]['input_wait_share']:.2%}" in printed
    page = (tuned.folder / "report.html").read_text(encoding="utf-8")
    assert 'id="curve-val_accuracy"' in page
    assert f"<th>scores.accuracy</th><td>{tuned.scores.accuracy:.6g}</td>" in page


@pytest.mark.exhaustive
def test_the_page_goes_where_it_is_told_to(tuned, tmp_path):
    output_of("report", tuned.folder, "--output", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    assert "is not a run folder (no recipe.json)" in mistake("report", tmp_path)
    assert "is not a run folder (no recipe.json)" in mistake("report", tmp_path / "nowhere")
