"""Proves that `albert-tf report` writes one page about a run of either kind and refuses what is none."""

import pytest

from albert_tf.trainer import finetune
from albert_tf.trainer.run_folder import read_metrics
from tests.trainer.mood_runs import options_for, write_files

from .terminal import mistake, output_of


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A fine-tuning of two epochs."""
    folder = write_files(tmp_path_factory.mktemp("tuned"))
    return finetune(options_for(folder, folder / "run", epochs=2))


@pytest.mark.exhaustive
def test_a_fine_tuning_has_its_page(tuned):
    printed = output_of("report", tuned.folder, "--output", tuned.folder / "page.html")
    entries = read_metrics(tuned.folder / "metrics.jsonl")
    assert [entry["step"] for entry in entries] == [3, 6]
    assert [entry["val_accuracy"] for entry in entries] == list(tuned.score_by_evaluation)
    assert f"{entries[1]['tokens_per_second']:,.0f}" in printed
    assert f"{entries[1]['input_wait_share']:.2%}" in printed
    page = (tuned.folder / "page.html").read_text(encoding="utf-8")
    assert 'id="curve-val_accuracy"' in page
    assert f"<th>scores.accuracy</th><td>{tuned.scores.accuracy:.6g}</td>" in page


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    assert "is not a run folder (no recipe.json)" in mistake("report", tmp_path)
    assert "is not a run folder (no recipe.json)" in mistake("report", tmp_path / "nowhere")
