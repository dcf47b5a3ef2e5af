"""Proves that every check of a checkpoint passes on a sound folder and fails, by name and alone, on its own damage."""

import shutil

import numpy as np
import pytest
import safetensors.numpy

from albert_tf import AlbertForMaskedLM
from albert_tf.cli.checkpoint_checks import check_checkpoint
from tests.conftest import ROOT
from tests.disk import change_json
from tests.toy_task import CONFIG

GOLDEN = ROOT / "tests" / "golden"
OF_A_SOUND_FOLDER = ["files", "weights", "values", "vocabulary", "special pieces", "capital letters"]


@pytest.fixture
def folder(folders, tmp_path):
    return shutil.copytree(folders["pretrained"], tmp_path / "some_model")


def failures(folder):
    return {check.name: check.finding for check in check_checkpoint(folder) if not check.passed}


def finding(folder, name):
    """Of a check that fails alone."""
    found = failures(folder)
    assert list(found) == [name]
    assert "\n" not in found[name]
    return found[name]


def change_tensors(folder, edit):
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    edit(tensors)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")


def test_a_sound_folder(folder):
    checks = list(check_checkpoint(folder))
    assert [check.name for check in checks] == OF_A_SOUND_FOLDER
    assert all(check.passed for check in checks)
    count = CONFIG.num_parameters("pretraining")
    assert checks[0].finding == f"32 tensors with {count:,} values can be read."
    assert checks[1].finding == "Every tensor is used: encoder, masked_lm, sentence_order."
    assert checks[-1].finding == "All are known."


@pytest.mark.parametrize(
    "source",
    [
        *("M2_groups", "M3_heads/squad_v2", "M3_heads/race", "hf_for_token_classification"),
        *("hf_groups2_inner2_for_pretraining", "hf_model_no_pooler"),
    ],
)
def test_weights_of_every_kind_and_head(source):
    assert finding(GOLDEN / source, "vocabulary").endswith("such as spiece.model, 30k-clean.model or vocab.txt.")


# === Files and weights ===


def test_a_truncated_file(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-5])
    assert "or is damaged" in finding(folder, "files")


def test_no_folder(tmp_path):
    assert list(failures(tmp_path / "nowhere")) == ["files", "vocabulary"]


def test_weights_of_another_config(folder):
    change_json(folder / "config.json", intermediate_size=65)
    assert "other shapes (encoder/ffn_0_0/intermediate/kernel (32, 64) for (32, 65)" in finding(folder, "weights")


def test_a_config_of_absurd_size(folder):
    change_json(folder / "config.json", vocab_size=2**30)
    found = failures(folder)
    assert list(found) == ["weights", "vocabulary"]
    assert (
        f"config describes an encoder of {CONFIG.replace(vocab_size=2**30).num_parameters():,} param"
        in found["weights"]
    )


def test_half_a_head(folder):
    change_tensors(folder, lambda tensors: tensors.pop("sop_classifier.classifier.bias"))
    assert "missing sentence_order/bias" in failures(folder)["weights"]


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_values_that_are_not_finite(value, folder):
    def spoil(tensors):
        tensors["albert.pooler.weight"][3, 4] = value

    change_tensors(folder, spoil)
    assert "NaN or infinity in encoder/pooler/kernel; download" in finding(folder, "values")


# === Vocabulary ===


def test_a_vocabulary_of_another_size(folder):
    AlbertForMaskedLM(CONFIG.replace(vocab_size=29999)).save_pretrained(folder)
    assert "vocab_size=29999, a vocabulary of 30000 pieces" in finding(folder, "vocabulary")


def test_a_vocabulary_that_is_none(folder):
    (folder / "spiece.model").write_bytes(b"no model")
    assert "must be a SentencePiece model" in finding(folder, "vocabulary")


@pytest.mark.exhaustive
def test_vocabularies_where_tf_hub_and_kerashub_keep_them(folder):
    for place in ("assets/30k-clean.model", "assets/tokenizer/vocabulary.spm"):
        shutil.rmtree(folder / "assets", ignore_errors=True)
        (folder / place).parent.mkdir(parents=True)
        shutil.copy(ROOT / "albert_tf" / "assets" / "30k-clean.model", folder / place)
        (folder / "spiece.model").unlink(missing_ok=True)
        assert not failures(folder)


def test_a_list_of_word_pieces(folder):
    (folder / "spiece.model").unlink()
    (folder / "tokenizer_config.json").unlink()
    small = [*"abcdefghijklmnopqrstuvwxyz", *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")]
    pieces = ["[PAD]", *(f"[unused{i}]" for i in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]", *small]
    pieces += [f"字{i}" for i in range(CONFIG.vocab_size - len(pieces))]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    checks = {check.name: check for check in check_checkpoint(folder)}
    assert all(check.passed for check in checks.values())
    assert checks["special pieces"].finding == "[PAD] 0, [UNK] 100, [CLS] 101, [SEP] 102, [MASK] 103."
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert "The capital letters ABCDEFGHIJKLMNOPQRSTUVWXYZ are unknown" in finding(folder, "capital letters")


def test_capitals_that_become_unknown(folder):
    change_json(folder / "tokenizer_config.json", do_lower_case=False)
    unknown = "The capital letters ABCDEFGHIJKLMNOPQRSTUVWXYZ are unknown; load the tokenizer with do_lower_case=True"
    assert unknown in finding(folder, "capital letters")


def test_special_pieces_at_other_ids(folder):
    content = (folder / "spiece.model").read_bytes()
    swapped = content.replace(b"[CLS]", b"[???]", 1).replace(b"[SEP]", b"[CLS]", 1).replace(b"[???]", b"[SEP]", 1)
    (folder / "spiece.model").write_bytes(swapped)
    assert "but this vocabulary has [CLS] at 3 for 2, [SEP] at 2 for 3; use" in finding(folder, "special pieces")
