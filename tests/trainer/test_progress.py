"""The progress line keeps the step, the loss and the remaining time on narrow terminals."""

import io
import math

import pytest
import rich.console
import rich.text

from albert_tf import AlbertForPreTraining
from albert_tf.trainer.callbacks import ProgressLine
from albert_tf.trainer.run_folder import Speed
from tests.models.small import CONFIG


@pytest.mark.parametrize("width", [60, 80, 140])
def test_what_matters_fits(width):
    model = AlbertForPreTraining(CONFIG)
    model.compile("sgd")
    model.optimizer.build(model.trainable_variables)
    line = ProgressLine("pretrain", total=20000, tokens_per_step=4096, lines_every=100)
    written = io.StringIO()
    line.console = rich.console.Console(file=written, force_terminal=True, width=width)
    line.set_model(model)
    line.on_train_begin()
    line._show(12345, 9.54, Speed(tokens_per_second=4300.0, seconds_per_step=0.959, input_wait_share=0.009))
    line.close()
    last = rich.text.Text.from_ansi(written.getvalue()).plain.splitlines()[-1]
    assert len(last) <= width
    assert "pretrain" in last
    assert "12345/20000" in last
    assert "loss 9.540  4.3k tokens/s" in last
    assert ("input wait" in last) == (width == 140)
    assert last.rstrip().endswith(("-:--:--", "0:00:00")) or last.rstrip()[-3] == ":"
    assert "input wait" not in str(Speed(4300.0, 0.959, math.nan))


def test_it_says_what_is_compiled():
    model, written = AlbertForPreTraining(CONFIG), io.StringIO()
    model.compile("sgd", jit_compile=True)
    model.make_train_function()
    line = ProgressLine("pretrain", total=100, tokens_per_step=4096, lines_every=100)
    line.console = rich.console.Console(file=written, width=60)
    line.set_model(model)
    line.on_train_begin()
    for shape, seconds in (("32 x 128", None), ("32 x 128", 31.4)):
        model.step_monitor.on_compile(shape, seconds)
    line.close()
    assert written.getvalue().splitlines() == [
        "pretrain  compiling the step for batches of 32 x 128",
        "pretrain  compiled the step for batches of 32 x 128 in 31 s",
    ]
