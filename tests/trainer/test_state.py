"""Checkpoints: which are kept, which are taken up, and what a kill leaves between them."""

import pytest

from albert_tf import AlbertForPreTraining
from albert_tf.trainer import parse_recipe
from albert_tf.trainer.checkpoint_files import newest_whole, saved_states
from albert_tf.trainer.state import TrainingState
from tests.models.small import CONFIG


def make_state(folder, **training) -> TrainingState:
    training = {"num_train_steps": 100, "batch_size": 8, "evaluate_every": 100, "save_every": 100, **training}
    recipe = {"model": {}, "data": {"examples": "x"}, "optimizer": {"learning_rate": 1e-3}, "training": training}
    model = AlbertForPreTraining(CONFIG)
    model.compile("adam")
    return TrainingState(folder, model, parse_recipe(recipe).training, {})


def save(state: TrainingState, step: int, held_out: float | None = None) -> None:
    state.model.optimizer.iterations.assign(step)
    state.save(held_out)
    state.writer.wait()


def steps(folder) -> list[int]:
    return [saved.step for saved in saved_states(folder)]


@pytest.mark.parametrize(("metric", "best"), [("masked_lm_loss", 20), ("masked_lm_accuracy", 10)])
def test_the_newest_and_the_best_are_kept(tmp_path, metric, best):
    state = make_state(tmp_path, keep_checkpoints=2, best_metric=metric)
    for step, score in ((10, 6.0), (20, 3.0), (30, 4.0), (40, None), (50, 5.0)):
        save(state, step, score)
    assert steps(tmp_path) == [best, 40, 50]
    assert state.writer.is_best(2.0) == (metric == "masked_lm_loss")
    assert not state.writer.is_best(3.0 if best == 20 else 6.0)
    assert [saved.fault() for saved in saved_states(tmp_path)] == [None] * 3


def test_what_a_kill_leaves_is_no_checkpoint_and_goes_with_the_next(tmp_path):
    state = make_state(tmp_path)
    save(state, 10)
    for leftover in ("step-20.index", "step-20.data-00000-of-00001", ".step-20.json.x1"):
        (tmp_path / leftover).write_bytes(b"half")
    (tmp_path / "step-20_temp").mkdir()
    (tmp_path / "step-20_temp/part").write_bytes(b"half")
    assert newest_whole(tmp_path).step == 10
    save(state, 30)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"step-{step}.{end}" for step in (10, 30) for end in ("index", "data-00000-of-00001", "json")}


def damage(folder, name):
    (folder / name).unlink() if name.endswith("index") else (folder / name).write_bytes(b"{")


@pytest.mark.parametrize("name", ["step-20.json", "step-20.index", "step-20.data-00000-of-00001"])
def test_a_damaged_checkpoint_is_left_out_and_removed_with_the_next(tmp_path, name):
    state = make_state(tmp_path, keep_checkpoints=2)
    save(state, 10)
    save(state, 20)
    damage(tmp_path, name)
    with pytest.warns(UserWarning, match=f"{name} .*Going on from .*step-10"):
        assert newest_whole(tmp_path).step == 10
    save(state, 15)
    assert steps(tmp_path) == [10, 15]


def test_damage_everywhere_is_an_error(tmp_path):
    save(make_state(tmp_path), 10)
    damage(tmp_path, "step-10.json")
    with pytest.raises(ValueError, match=r"whole.*step-10.json cannot be read.*remove them all"):
        newest_whole(tmp_path)


def test_a_folder_without_checkpoints_has_none(tmp_path):
    assert newest_whole(tmp_path / "checkpoints") is None
