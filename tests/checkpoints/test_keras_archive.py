"""Proves that KerasHub's presets and files come in to the bit and give their numbers, and what is said of others."""

import json
import shutil
import zipfile

import h5py
import keras
import numpy as np
import pytest

from albert_tf import (
    AlbertConfig,
    AlbertEncoder,
    AlbertForMaskedLM,
    AlbertForSequenceClassification,
    checkpoints,
)
from tests.checkpoints.comparison import assert_close, assert_same

INPUTS = {"input_ids": "token_ids", "attention_mask": "padding_mask", "token_type_ids": "segment_ids"}


def inputs_of(arrays):
    return {ours: arrays[theirs] for ours, theirs in INPUTS.items()}


# === KerasHub ===


@pytest.mark.parametrize(
    ("name", "place", "config"),
    [
        ("keras_hub_backbone", "preset", {"hidden_act": "gelu_new"}),
        ("keras_hub_backbone", "model.keras", {"hidden_act": "gelu_new"}),
        ("keras_hub_backbone", "preset/model.weights.h5", {"hidden_act": "gelu_new"}),
        ("keras_hub_groups", "preset", {"num_hidden_groups": 2, "inner_group_num": 2, "embedding_projection": True}),
    ],
)
def test_a_backbone(name, place, config, golden):
    case = golden(name)
    model = AlbertEncoder.from_pretrained(case.folder / place)
    assert model.config.to_dict() == model.config.to_dict() | config
    outputs = model(inputs_of(case.arrays))
    assert_close(outputs["sequence_output"], case.arrays["sequence_output"])
    assert_close(outputs["pooled_output"], case.arrays["pooled_output"])


@pytest.mark.parametrize("place", ["preset", "preset/whole.weights.h5"])
def test_a_masked_lm(place, golden):
    case = golden("keras_hub_masked_lm")
    model = AlbertForMaskedLM.from_pretrained(case.folder / place)
    inputs = {**inputs_of(case.arrays), "masked_lm_positions": case.arrays["mask_positions"]}
    assert_close(model(inputs)["logits"], case.arrays["logits"])


@pytest.mark.parametrize("place", ["preset", "model.keras"])
def test_a_classifier(place, golden):
    case = golden("keras_hub_text_classifier")
    model = AlbertForSequenceClassification.from_pretrained(case.folder / place)
    assert model.num_labels == 3
    assert_close(model(inputs_of(case.arrays))["logits"], case.arrays["logits"])


def test_a_masked_lm_keeps_its_epsilon(golden, tmp_path):
    case = golden("keras_hub_masked_lm")
    model = AlbertForMaskedLM.from_pretrained(case.folder / "preset")
    said = "would compute different masked-LM logits, .* epsilon=1e-12 and .*masked_lm_layer_norm_eps=1e-05"
    with pytest.warns(UserWarning, match=f"^transformers {said}"):
        model.save_pretrained(tmp_path / "huggingface")
    with pytest.warns(UserWarning, match=f"^Google's code {said}"):
        checkpoints.save_google(model, tmp_path / "google" / "model.ckpt-best")
    inputs = {**inputs_of(case.arrays), "masked_lm_positions": case.arrays["mask_positions"]}
    for layout in ("huggingface", "google"):
        again = AlbertForMaskedLM.from_pretrained(tmp_path / layout)
        assert again.config == model.config
        np.testing.assert_array_equal(again(inputs)["logits"], model(inputs)["logits"])


@pytest.mark.filterwarnings("error")
def test_an_encoder_alone_has_no_epsilon_to_warn_of(golden, tmp_path):
    checkpoint = checkpoints.read(golden("keras_hub_backbone").folder / "preset")
    for layout in ("huggingface", "google"):
        checkpoints.write(checkpoint, tmp_path / layout, layout)
        assert_same(checkpoints.read(tmp_path / layout).arrays, checkpoint.arrays)


@pytest.fixture
def preset(golden, tmp_path):
    shutil.copytree(golden("keras_hub_text_classifier").folder / "preset", tmp_path, dirs_exist_ok=True)
    return tmp_path


def change_config(folder, **changes):
    values = json.loads((folder / "config.json").read_text())
    values["config"].update(changes)
    (folder / "config.json").write_text(json.dumps(values))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"num_heads": 8}, r"has 4 attention heads, but its config has num_attention_heads=8; correct"),
        ({"vocabulary_size": 301}, r"word_embeddings \(300, 16\) for \(301, 16\)"),
        ({"num_inner_repetitions": 2}, r"missing encoder/attention_0_1/query/kernel"),
        ({"num_heads": 5}, r"hidden_size=32, num_attention_heads=5"),
    ],
)
def test_another_config(changes, complaint, preset):
    change_config(preset, **changes)
    with pytest.raises(ValueError, match=complaint):
        AlbertForSequenceClassification.from_pretrained(preset)


def test_another_model(preset):
    values = json.loads((preset / "config.json").read_text())
    (preset / "config.json").write_text(json.dumps({**values, "class_name": "BertBackbone"}))
    with pytest.raises(ValueError, match=r"has class_name='BertBackbone', which is neither a model of this package"):
        checkpoints.read(preset)
    del values["config"]["num_heads"]
    (preset / "config.json").write_text(json.dumps(values))
    with pytest.raises(ValueError, match=r"no num_heads .*download it again"):
        checkpoints.read(preset)
    (preset / "config.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"config\.json holds list where an object is expected"):
        checkpoints.read(preset)


def test_an_array_too_many(preset):
    with h5py.File(preset / "model.weights.h5", "a") as file:
        file["layers/extra/vars/0"] = np.zeros(3)
    with pytest.raises(ValueError, match=r"a model of its config does not have: layers/extra/vars/0;"):
        checkpoints.read(preset)


# === Other models ===

CONFIG = AlbertConfig(
    **{"vocab_size": 30, "embedding_size": 8, "hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2},
    **{"intermediate_size": 24, "num_hidden_groups": 2, "inner_group_num": 2, "hidden_dropout_prob": 0.1},
)


def test_models_of_this_package_are_read_by_keras(tmp_path):
    model = AlbertForSequenceClassification(CONFIG, labels=["no", "yes", "perhaps"])
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    model.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    for path in (tmp_path, tmp_path / "model.keras", tmp_path / "model.weights.h5"):
        with pytest.raises(
            ValueError, match=r"keras\.saving\.load_model\(FILE\)\.save_pretrained\(FOLDER\) for a \.keras"
        ):
            AlbertForSequenceClassification.from_pretrained(path)
    keras.saving.load_model(tmp_path / "model.keras").save_pretrained(tmp_path / "model")
    again = AlbertForSequenceClassification.from_pretrained(tmp_path / "model")
    assert again.labels == model.labels
    assert_same(again.arrays_by_path(), model.arrays_by_path())


def test_a_users_own_model_is_for_keras(tmp_path):
    ids = keras.Input((None,), dtype="int32")
    keras.Model(ids, AlbertEncoder(CONFIG)(ids)["pooled_output"]).save(tmp_path / "model.keras")
    with pytest.raises(ValueError, match=r"class_name='Functional', .*load other Keras models with keras\.saving"):
        AlbertEncoder.from_pretrained(tmp_path / "model.keras")


def test_a_config_is_missing(preset):
    (preset / "config.json").unlink()
    with pytest.raises(ValueError, match=r"has no config\.json beside it"):
        checkpoints.read(preset / "model.weights.h5")


# Without a check of its own, this makes some versions of HDF5 hang.
def test_a_damaged_heap_of_strings(preset):
    file = preset / "model.weights.h5"
    content, sound = file.read_bytes(), b"GCOL\x01\x00\x00\x00\x00\x10"
    assert sound + b"\x00\x00" in content
    file.write_bytes(content.replace(sound + b"\x00\x00", sound + b"\xff\xff"))
    with pytest.raises(ValueError, match=r"is not a valid HDF5 file of Keras .*its strings are damaged"):
        checkpoints.read(file)


def test_names_of_layers_are_not_read(preset):
    """HDF5 may crash on a damaged one."""
    file = preset / "model.weights.h5"
    content, sound, arrays = file.read_bytes(), b"name\x00\x00\x00\x00\x19", checkpoints.read(file).arrays
    assert sound + b"\x01" in content
    file.write_bytes(content.replace(sound + b"\x01", sound + b"\xf4"))
    np.testing.assert_equal(checkpoints.read(file).arrays, arrays)


# === Damage ===


@pytest.mark.parametrize("kept", [0, 10, 5000, -1])
def test_a_truncated_archive(kept, golden, tmp_path):
    content = (golden("keras_hub_backbone").folder / "model.keras").read_bytes()
    path = tmp_path / "model.keras"
    path.write_bytes(content[:kept])
    with pytest.raises(ValueError, match=r"model\.keras is not a valid \.keras file \(.*again"):
        checkpoints.read(path)


@pytest.mark.parametrize("kept", [0, 10, 5000, -1])
def test_truncated_weights(kept, preset):
    path = preset / "model.weights.h5"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"is not a valid HDF5 file of Keras \(.*; download or save it again"):
        checkpoints.read(preset)


def test_other_archives(golden, tmp_path):
    with zipfile.ZipFile(golden("keras_hub_backbone").folder / "model.keras") as source:
        config, weights = source.read("config.json"), source.read("model.weights.h5")
    with zipfile.ZipFile(tmp_path / "model.keras", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", config)
        archive.writestr("model.weights.h5", weights)
    with pytest.raises(ValueError, match=r"is not a valid \.keras file \(it is compressed\)"):
        checkpoints.read(tmp_path / "model.keras")
    with zipfile.ZipFile(tmp_path / "model.keras", "w") as archive:
        archive.writestr("config.json", config)
    with pytest.raises(ValueError, match=r"is not a valid \.keras file .*model\.weights\.h5"):
        checkpoints.read(tmp_path / "model.keras")
