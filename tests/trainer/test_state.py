"""Checkpoints: which are kept, which are taken up, and what a kill leaves between them."""

import pytest

from albert_tf import AlbertForPreTraining
from albert_tf.trainer import parse_recipe
from albert_tf.trainer.checkpoint_files import latest_valid_checkpoint, saved_checkpoints
from albert_tf.trainer.run_state import TrainingState
from tests.disk import flip_bit, full_disk
from tests.models.small import CONFIG

FILES = ("state.json", "state.index", "state.data-00000-of-00001")


def make_state(folder, **training) -> TrainingState:
    training = {"num_train_steps": 100, "batch_size": 8, "evaluate_every": 100, "save_every": 100, **training}
    recipe = {
        "model": {"preset": "tiny"},
        "data": {"examples": "x"},
        "optimizer": {"learning_rate": 1e-3},
        "training": training,
    }
    model = AlbertForPreTraining(CONFIG)
    model.compile("adam")
    return TrainingState(folder, model, parse_recipe(recipe).training, {})


def save(state: TrainingState, step: int, held_out: float | None = None) -> None:
    state.model.optimizer.iterations.assign(step)
    state.save(held_out)
    state.writer.wait()


def steps(folder) -> list[int]:
    return [saved.step for saved in saved_checkpoints(folder)]


@pytest.mark.parametrize(("metric", "best"), [("masked_lm_loss", 20), ("masked_lm_accuracy", 10)])
def test_the_newest_and_the_best_are_kept(tmp_path, metric, best):
    state = make_state(tmp_path, keep_checkpoints=2, best_metric=metric)
    for step, score in ((10, 6.0), (20, 3.0), (30, 4.0), (40, None), (50, 5.0)):
        save(state, step, score)
    assert steps(tmp_path) == [best, 40, 50]
    assert [saved.corruption() for saved in saved_checkpoints(tmp_path)] == [None] * 3


def test_a_full_disk_is_told_without_what_tensorflow_says_about_itself(tmp_path):
    state = make_state(tmp_path)
    with pytest.raises(OSError) as full, full_disk(2000):  # noqa: PT011
        save(state, 10)
    assert str(full.value) == (
        f"Could not write the checkpoint of step 10 to {tmp_path}: File too large. Earlier checkpoints are intact; "
        "free disk space and run the same command again."
    )


def test_what_a_kill_leaves_is_no_checkpoint_and_goes_with_the_next(tmp_path):
    state = make_state(tmp_path)
    save(state, 10)
    (tmp_path / ".step-20").mkdir()
    (tmp_path / ".step-20/state.index").write_bytes(b"half")
    assert latest_valid_checkpoint(tmp_path).step == 10
    save(state, 30)
    assert {path.name for path in tmp_path.iterdir()} == {"step-10", "step-30"}
    assert {path.name for path in (tmp_path / "step-30").iterdir()} == set(FILES)


def damage(folder, name):
    if name.endswith("index"):
        (folder / name).unlink()
    else:
        flip_bit(folder / name)


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_checkpoint_is_left_out_and_removed_with_the_next(tmp_path, name):
    state = make_state(tmp_path, keep_checkpoints=2)
    save(state, 10)
    save(state, 20)
    damage(tmp_path / "step-20", name)
    with pytest.warns(UserWarning, match=f"step-20/{name} .*Resuming from .*step-10"):
        assert latest_valid_checkpoint(tmp_path).step == 10
    save(state, 15)
    assert steps(tmp_path) == [10, 15]


def test_a_damaged_checkpoint_is_written_again(tmp_path):
    state = make_state(tmp_path)
    save(state, 10)
    damage(tmp_path / "step-10", "state.json")
    save(state, 10)
    assert latest_valid_checkpoint(tmp_path).step == 10


@pytest.mark.parametrize("content", ["[1]", "null", "{}", '{"sha256": 5}'])
def test_metadata_of_the_wrong_kind_are_damage(tmp_path, content):
    save(make_state(tmp_path), 10)
    (tmp_path / "step-10/state.json").write_text(content)
    with pytest.raises(ValueError, match=r"no valid checkpoint \(step-10/state.json is missing or damaged\)"):
        latest_valid_checkpoint(tmp_path)


def test_without_metadata_nothing_starts_anew(tmp_path):
    assert latest_valid_checkpoint(tmp_path) is None
    state = make_state(tmp_path)
    for step in (10, 20):
        save(state, step)
        (tmp_path / f"step-{step}/state.json").unlink()
    with pytest.raises(ValueError, match=r"no valid checkpoint.*step-20.*step-10.*remove the folder to start from"):
        latest_valid_checkpoint(tmp_path)
