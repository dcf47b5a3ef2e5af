"""Proves that Keras loads files with classes of this package in a process that has imported no more than its name."""

import keras
import numpy as np
import pytest

import albert_tf
from albert_tf import registration
from albert_tf.tokenization import TokenizerLayer
from tests.models.small import CONFIG

LOAD = """
{imports}
import pathlib
for file in sorted(pathlib.Path("{folder}").glob("*.keras")):
    model = keras.saving.load_model(file)
    print(file.stem, type(model).__name__, type(getattr(model, "optimizer", None)).__name__)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file for each optimizer, one with a schedule, and for a layer."""
    folder = tmp_path_factory.mktemp("files")
    schedule = albert_tf.optimizers.WarmupSchedule(1e-3, 10, 2)
    model = albert_tf.AlbertForSequenceClassification(CONFIG, num_labels=3)
    for optimizer in (albert_tf.optimizers.AdamW(schedule), albert_tf.optimizers.Lamb(1e-3)):
        model.compile(optimizer)
        optimizer.build(model.trainable_variables)
        model.save(folder / f"{optimizer.name}.keras")
    vectors = keras.Input((None, CONFIG.hidden_size))
    hidden = albert_tf.layers.TransformerBlock(CONFIG)(vectors)
    keras.Model(vectors, hidden).save(folder / "layer.keras")
    return folder


@pytest.mark.exhaustive
@pytest.mark.parametrize("imports", ["import albert_tf; import keras", "import keras; import albert_tf"])
def test_a_new_process(imports, folder, run_python):
    lines = run_python("-c", LOAD.format(imports=imports, folder=folder)).stdout.splitlines()
    assert lines == [
        "adam_w AlbertForSequenceClassification AdamW",
        "lamb AlbertForSequenceClassification Lamb",
        "layer Functional NoneType",
    ]


def test_every_class_is_in_the_table():
    for name in albert_tf.__all__:
        getattr(albert_tf, name)
    for name in (*albert_tf.optimizers.__all__, *albert_tf.layers.__all__):
        getattr(albert_tf.optimizers, name, None)
    assert TokenizerLayer.__name__ in registration._MODULE_OF
    classes = {name: kind for name, kind in keras.saving.get_custom_objects().items() if name.startswith("albert_tf>")}
    assert {name.partition(">")[2] for name in classes} == set(registration._MODULE_OF)
    assert [name for name, kind in classes.items() if not isinstance(kind, type)] == []


def test_a_class_that_stands_for_another_makes_its_instances():
    unloaded = registration._Unloaded("albert_tf.models", "AlbertEncoder")
    encoder = albert_tf.AlbertEncoder(CONFIG)
    again = unloaded.from_config(encoder.get_config())
    assert type(again) is albert_tf.AlbertEncoder
    assert again.config == CONFIG
    assert np.sum([np.size(weight) for weight in again.get_weights()]) == encoder.count_params()
