"""Proves that the reference's checkpoints are read to the bit, found where they are, and refused where damaged."""

import shutil

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertEncoder, AlbertForPreTraining, checkpoints

# One name of each kind; the golden outputs of the models prove the rest of the table.
EXAMPLES = {
    "encoder/embeddings/layer_norm/gamma": "bert/embeddings/LayerNorm/gamma",
    "encoder/attention_0_0/query/kernel": "{block}/attention_1/self/query/kernel",
    "encoder/attention_0_0/output/bias": "{block}/attention_1/output/dense/bias",
    "encoder/attention_0_0/layer_norm/beta": "{block}/LayerNorm/beta",
    "encoder/ffn_0_0/intermediate/kernel": "{block}/ffn_1/intermediate/dense/kernel",
    "encoder/ffn_0_0/output/kernel": "{block}/ffn_1/intermediate/output/dense/kernel",
    "encoder/ffn_0_0/layer_norm/beta": "{block}/LayerNorm_1/beta",
    "masked_lm/output_bias": "cls/predictions/output_bias",
}
BLOCK = "bert/encoder/transformer/group_0/inner_group_0"


@pytest.mark.parametrize("name", ["M1_small", "M2_groups", "M4_xlargeish"])
def test_every_tensor_to_the_bit(name, golden):
    folder = golden(name).folder
    reader = tf.train.load_checkpoint(str(folder / "model.ckpt"))
    model = AlbertForPreTraining.from_pretrained(folder)
    found = {path: variable.numpy() for path, variable in model.variables_by_path().items()}
    for path, google in EXAMPLES.items():
        np.testing.assert_array_equal(found[path], reader.get_tensor(google.format(block=BLOCK)), err_msg=path)
    np.testing.assert_array_equal(
        found["sentence_order/kernel"].T, reader.get_tensor("cls/seq_relationship/output_weights")
    )
    # All values are drawn at random, so equal sorted values mean that each tensor was used, and used once.
    theirs = [reader.get_tensor(key) for key in reader.get_variable_to_shape_map() if key != "global_step"]
    assert sorted(np.concatenate([a.ravel() for a in theirs])) == sorted(
        np.concatenate([a.ravel() for a in found.values()])
    )


def test_by_folder_and_by_prefix_and_without_slots(golden):
    folder = golden("O1_lamb").folder
    by_folder, by_prefix = checkpoints.read(folder), checkpoints.read(folder / "model.ckpt-0")
    assert by_folder.config == by_prefix.config
    assert by_folder.arrays.keys() == by_prefix.arrays.keys()
    assert len(by_folder.arrays) == 32


def test_of_several_the_best(golden, tmp_path):
    shutil.copytree(golden("M1_small").folder, tmp_path, dirs_exist_ok=True)
    for name in ("model.ckpt.index", "model.ckpt.data-00000-of-00001"):
        shutil.copy(tmp_path / name, tmp_path / name.replace("model.ckpt", "model.ckpt-7"))
    with pytest.raises(
        ValueError, match=r"must hold one checkpoint.* with model\.ckpt, model\.ckpt-7; give the .*prefix"
    ):
        AlbertEncoder.from_pretrained(tmp_path)
    assert AlbertEncoder.from_pretrained(tmp_path / "model.ckpt-7")
    for name in ("model.ckpt.index", "model.ckpt.data-00000-of-00001"):
        shutil.copy(tmp_path / name, tmp_path / name.replace("model.ckpt", "model.ckpt-best"))
    assert checkpoints.read(tmp_path).source == tmp_path / "model.ckpt-best"


def test_without_its_config(golden, tmp_path):
    shutil.copytree(golden("M1_small").folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "albert_config.json").unlink()
    with pytest.raises(
        ValueError, match=r"must have albert_config\.json beside it\. Received: .*model\.ckpt without; add"
    ):
        AlbertEncoder.from_pretrained(tmp_path / "model.ckpt")


@pytest.mark.parametrize("damage", ["truncated", "flipped", "absent", "empty_index"])
def test_damaged(damage, golden, tmp_path):
    shutil.copytree(golden("M1_small").folder, tmp_path, dirs_exist_ok=True)
    data = tmp_path / "model.ckpt.data-00000-of-00001"
    if damage == "truncated":
        data.write_bytes(data.read_bytes()[:20000])
    elif damage == "flipped":
        content = bytearray(data.read_bytes())
        content[30000] ^= 1
        data.write_bytes(content)
    elif damage == "absent":
        data.unlink()
    else:
        (tmp_path / "model.ckpt.index").write_bytes(b"")
    with pytest.raises(ValueError, match=r"A checkpoint must be whole\. Received: .*model\.ckpt \(.*\); download"):
        AlbertEncoder.from_pretrained(tmp_path)
