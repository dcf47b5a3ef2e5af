"""Fine-tuning that is stopped or killed goes on to the same bits, and a folder has one run at a time."""

import os
import signal
import subprocess
import sys

import keras
import pytest

from albert_tf.files.atomic import exclusive_lock
from albert_tf.trainer import TrainingStopped, finetune, finetuning
from albert_tf.trainer.run_folder import read_metrics
from tests.conftest import ROOT
from tests.trainer.mood_runs import options_for, predictions, write_files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("finetuning"))


def stop_at(step, options, told=signal.SIGTERM):
    """Runs and sends this process a signal before that step; returns what the run says of it."""
    with pytest.MonkeyPatch.context() as patch:

        class Terminator(keras.callbacks.Callback):
            def __init__(self, cure):
                super().__init__()

            def on_train_batch_begin(self, batch, logs=None):
                if self.model.optimizer.iterations.numpy() == step - 1:
                    os.kill(os.getpid(), told)

        patch.setattr(finetuning, "StopAtBadLoss", Terminator)
        with pytest.raises(TrainingStopped) as stopped:
            finetune(options)
        assert stopped.value.exit_status == 128 + told
        return str(stopped.value)


def assert_same_run(folder, other):
    assert (folder / "model.safetensors").read_bytes() == (other / "model.safetensors").read_bytes()
    first, second = (read_metrics(run / "metrics.jsonl") for run in (folder, other))
    for name in ("step", "loss", "learning_rate", "val_accuracy"):
        assert [entry[name] for entry in first] == [entry[name] for entry in second]
    assert predictions(folder) == predictions(other)


@pytest.mark.exhaustive
def test_a_run_that_is_told_to_stop_goes_on_to_the_same_bits(files, tmp_path):
    options = options_for(files, tmp_path / "whole", seed=5, learning_rate=1e-2, epochs=3, evaluations_per_epoch=2)
    report = finetune(options)
    assert (report.steps, len(report.score_by_evaluation)) == (10, 5)
    stopped = options.model_copy(update={"output": tmp_path / "stopped"})
    before = signal.getsignal(signal.SIGTERM)
    for step in (4, 5):
        said = stop_at(step, stopped)
        assert said == f"Interrupted at step {step - 1}; the state was saved, and the same command resumes."
    assert signal.getsignal(signal.SIGTERM) is before
    assert finetune(stopped).kept_evaluation == report.kept_evaluation
    assert_same_run(stopped.output, options.output)
    assert not (stopped.output / "checkpoints").exists()
    assert not list(stopped.output.glob(".*"))  # ids


KILLED = """
import os, signal, sys
import keras
from albert_tf.trainer import FinetuneOptions, finetune, finetuning

class Killer(keras.callbacks.Callback):
    def __init__(self, cure):
        super().__init__()

    def on_train_batch_begin(self, batch, logs=None):
        if self.model.optimizer.iterations.numpy() == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)

finetuning.StopAtBadLoss = Killer
finetune(FinetuneOptions.model_validate_json(sys.argv[1]))
"""


@pytest.mark.exhaustive
def test_a_killed_run_goes_on_to_the_same_bits(files, tmp_path):
    options = options_for(files, tmp_path / "whole", seed=5, learning_rate=1e-2, epochs=4)
    finetune(options)
    killed = options.model_copy(update={"output": tmp_path / "killed"})
    for step in (1, 4):  # before the first checkpoint, and after one
        command = [sys.executable, "-c", KILLED, killed.model_dump_json(), str(step)]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert done.returncode == -signal.SIGKILL, done.stderr
    finetune(killed)
    assert_same_run(killed.output, options.output)


@pytest.mark.exhaustive
def test_the_best_weights_are_restored_or_the_run_says_why_not(files, tmp_path):
    options = options_for(files, tmp_path / "run", learning_rate=1e-12, epochs=3)
    stop_at(3 * 3, options)
    best = tmp_path / "run/checkpoints/step-3"  # all scores are equal
    (best / "state.json").write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match="The best weights, of evaluation 1, cannot be restored: it was not found"):
        finetune(options)


@pytest.mark.exhaustive
def test_lost_evaluations_are_found_before_anything_is_trained(files, tmp_path):
    options = options_for(files, tmp_path / "run", epochs=3)
    stop_at(4, options)
    (tmp_path / "run/metrics.jsonl").unlink()
    with pytest.raises(ValueError, match="lacks evaluations"):
        finetune(options)
    assert not (tmp_path / "run/metrics.jsonl").exists()


@pytest.mark.exhaustive
def test_a_run_that_is_stopped_twice_at_the_same_step_keeps_its_best_weights(files, tmp_path):
    options = options_for(files, tmp_path / "run", learning_rate=1e-12, epochs=3)  # all scores are equal
    for _ in range(2):
        stop_at(4, options)
    assert finetune(options).kept_evaluation == 1


@pytest.mark.exhaustive
def test_patience_ends_a_run_early_and_a_resumed_one_does_not_train_on(files, tmp_path):
    options = options_for(files, tmp_path / "run", learning_rate=1e-12, epochs=9, patience=2)
    report = finetune(options)
    assert (report.steps, len(report.score_by_evaluation), report.kept_evaluation) == (9, 3, 1)


def test_a_folder_that_another_process_writes_is_refused(files, tmp_path):
    with (
        exclusive_lock(tmp_path / "run"),
        pytest.raises(ValueError, match="run is being written by another process"),
    ):
        finetune(options_for(files, tmp_path / "run"))
    assert not (tmp_path / "run").exists()
