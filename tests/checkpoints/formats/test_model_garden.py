"""Proves that Model Garden's checkpoints and SavedModels give their numbers."""

import json
import shutil

import numpy as np
import pytest

from albert_tf import AlbertConfig, AlbertEncoder, AlbertForPreTraining, checkpoints
from albert_tf.checkpoints.formats.model_garden import from_object_names
from albert_tf.checkpoints.formats.tensorflow import read_tensorflow
from tests.checkpoints.comparison import assert_close

CONFIG = {
    **{"vocab_size": 300, "embedding_size": 16, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4},
    **{"intermediate_size": 64, "max_position_embeddings": 32, "type_vocab_size": 2, "hidden_act": "gelu"},
}


@pytest.fixture
def checkpoint_of(golden, tmp_path):
    """Copies a case and puts the config there that its users keep beside it."""

    def copy(name, folder, **changes):
        shutil.copytree(golden(name).folder / folder, tmp_path / "copy", dirs_exist_ok=True)
        (tmp_path / "copy" / "albert_config.json").write_text(json.dumps({**CONFIG, **changes}))
        return tmp_path / "copy"

    return copy


def inputs_of(arrays):
    names = {"input_ids": "input_word_ids", "attention_mask": "input_mask", "token_type_ids": "input_type_ids"}
    return {ours: arrays[theirs] for ours, theirs in names.items()}


@pytest.mark.parametrize("folder", ["ckpt_encoder", "ckpt_model"])
def test_an_encoder(folder, golden, checkpoint_of):
    arrays = golden("model_garden_encoder").arrays
    model = AlbertEncoder.from_pretrained(checkpoint_of("model_garden_encoder", folder))
    outputs = model(inputs_of(arrays), output_hidden_states=True)
    assert_close(outputs["sequence_output"], arrays["sequence_output"])
    assert_close(outputs["pooled_output"], arrays["pooled_output"])
    assert_close(np.stack(outputs["hidden_states"][1:]), arrays["encoder_outputs"])


def test_a_pretrainer(golden, checkpoint_of):
    arrays = golden("model_garden_pretrainer").arrays
    folder = checkpoint_of("model_garden_pretrainer", "ckpt")
    model = AlbertForPreTraining.from_pretrained(folder)
    outputs = model({**inputs_of(arrays), "masked_lm_positions": arrays["masked_lm_positions"]})
    assert_close(outputs["masked_lm_logits"], arrays["mlm_logits"])
    assert_close(outputs["sentence_order_logits"], arrays["next_sentence"])
    assert_close(AlbertEncoder.from_pretrained(folder)(inputs_of(arrays))["sequence_output"], arrays["sequence_output"])


def test_saved_models_hold_the_same_weights(golden, checkpoint_of):
    for name, case, folder in (
        ("encoder", "model_garden_encoder", "ckpt_encoder"),
        ("encoder_with_mlm", "model_garden_pretrainer", "ckpt"),
    ):
        expected = dict(checkpoints.read(checkpoint_of(case, folder)).arrays)
        saved = checkpoint_of("model_garden_saved_model", name)
        (saved / "saved_model.pb").write_bytes(b"")
        found = dict(checkpoints.read(saved).arrays)
        if name == "encoder_with_mlm":
            # It keeps the encoder's own pooler and leaves the order head out.
            for path in ("encoder/pooler/kernel", "encoder/pooler/bias"):
                assert not np.array_equal(found.pop(path), expected.pop(path))
            assert expected.pop("sentence_order/kernel").shape == (32, 2)
            assert expected.pop("sentence_order/bias").shape == (2,)
        assert found.keys() == expected.keys()
        for path, array in expected.items():
            np.testing.assert_array_equal(found[path], array, err_msg=path)
        shutil.rmtree(saved)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"num_hidden_groups": 3}, "Model Garden shares one block .*num_hidden_groups=3"),
        ({"vocab_size": 301}, r"word_embeddings \(300, 16\) for \(301, 16\)"),
        ({"num_attention_heads": 2}, "has 4 attention heads, but its config has num_attention_heads=2"),
    ],
)
def test_what_does_not_fit(changes, complaint, checkpoint_of):
    folder = checkpoint_of("model_garden_encoder", "ckpt_encoder", **changes)
    with pytest.raises(ValueError, match=complaint):
        AlbertEncoder.from_pretrained(folder)
    (folder / "albert_config.json").unlink()
    with pytest.raises(ValueError, match=r"has no albert_config\.json beside it"):
        read_tensorflow(folder / "bert_model.ckpt-1")


def test_two_tensors_of_one_variable_are_an_error(tmp_path):
    end = "layer_with_weights-3/gamma/.ATTRIBUTES/VARIABLE_VALUE"
    tensors = {f"{root}/{end}": np.full(16, value, np.float32) for root, value in (("encoder", 1), ("model", 2))}
    with pytest.raises(ValueError, match=r"two tensors for `encoder/embeddings/layer_norm/gamma`"):
        from_object_names(tmp_path, AlbertConfig(**CONFIG), tensors)
