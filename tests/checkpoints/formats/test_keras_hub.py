"""Proves that KerasHub's presets and files come in to the bit and give their numbers, and what is said of others."""

import json
import shutil
import zipfile

import h5py
import keras
import numpy as np
import pytest

from albert_tf import AlbertConfig, AlbertEncoder, AlbertForMaskedLM, AlbertForSequenceClassification, checkpoints
from tests.checkpoints.comparison import assert_close, assert_same
from tests.disk import change_json

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


def with_config(**changes):
    def edit(folder):
        values = json.loads((folder / "config.json").read_text())
        change_json(folder / "config.json", config={**values["config"], **changes})

    return edit


def without_heads(folder):
    values = json.loads((folder / "config.json").read_text())
    del values["config"]["num_heads"]
    (folder / "config.json").write_text(json.dumps(values))


def with_array(folder):
    with h5py.File(folder / "model.weights.h5", "a") as file:
        file["layers/extra/vars/0"] = np.zeros(3)


def cut(name, kept):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:kept])


NOT_HDF5 = r"is not a valid HDF5 file of Keras \("


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (with_config(num_heads=8), "has 4 attention heads, but its config has num_attention_heads=8; correct"),
        (with_config(vocabulary_size=301), r"word_embeddings \(300, 16\) for \(301, 16\)"),
        (with_config(num_inner_repetitions=2), "missing encoder/attention_0_1/query/kernel"),
        (with_config(num_heads=5), "hidden_size=32, num_attention_heads=5"),
        (lambda folder: change_json(folder / "config.json", class_name="Bert"), "class_name='Bert', which is neither"),
        (without_heads, "no num_heads .*download it again"),
        (lambda folder: (folder / "config.json").write_text("[1]"), r"config\.json holds list where an object is"),
        (lambda folder: (folder / "config.json").unlink(), r"has no config\.json beside it"),
        (with_array, "a model of its config does not have: layers/extra/vars/0;"),
        *((cut("model.weights.h5", kept), f"{NOT_HDF5}.*; download or save it again") for kept in (0, 10, 5000, -1)),
    ],
)
def test_what_does_not_fit_is_named(edit, complaint, preset):
    edit(preset)
    has_config = (preset / "config.json").exists()
    with pytest.raises(ValueError, match=complaint):
        AlbertForSequenceClassification.from_pretrained(preset if has_config else preset / "model.weights.h5")


def test_names_of_layers_are_not_read(preset):
    """HDF5 may crash on a damaged one."""
    file = preset / "model.weights.h5"
    content, sound, arrays = file.read_bytes(), b"name\x00\x00\x00\x00\x19", checkpoints.read(file).arrays
    assert sound + b"\x01" in content
    file.write_bytes(content.replace(sound + b"\x01", sound + b"\xf4"))
    np.testing.assert_equal(checkpoints.read(file).arrays, arrays)


@pytest.mark.parametrize(
    ("compression", "names", "complaint"),
    [
        (zipfile.ZIP_DEFLATED, ["config.json", "model.weights.h5"], r" \(it is compressed\)"),
        (zipfile.ZIP_STORED, ["config.json"], r" .*model\.weights\.h5"),
    ],
)
def test_other_archives(compression, names, complaint, golden, tmp_path):
    with (
        zipfile.ZipFile(golden("keras_hub_backbone").folder / "model.keras") as source,
        zipfile.ZipFile(tmp_path / "model.keras", "w", compression) as archive,
    ):
        for name in names:
            archive.writestr(name, source.read(name))
    with pytest.raises(ValueError, match=rf"is not a valid \.keras file{complaint}"):
        checkpoints.read(tmp_path / "model.keras")


@pytest.mark.parametrize("kept", [0, 10, 5000, -1])
def test_a_truncated_archive(kept, golden, tmp_path):
    shutil.copy(golden("keras_hub_backbone").folder / "model.keras", tmp_path)
    cut("model.keras", kept)(tmp_path)
    with pytest.raises(ValueError, match=r"model\.keras is not a valid \.keras file \(.*again"):
        checkpoints.read(tmp_path / "model.keras")


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
    cure = r"keras\.saving\.load_model\(FILE\)\.save_pretrained\(FOLDER\) for a \.keras"
    for path in (tmp_path, tmp_path / "model.keras", tmp_path / "model.weights.h5"):
        with pytest.raises(ValueError, match=cure):
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
