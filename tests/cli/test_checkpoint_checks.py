"""Proves that every check of a checkpoint passes on a sound folder and fails, by name and alone, on its own damage."""

import shutil

import numpy as np
import pytest

from albert_tf import AlbertForMaskedLM
from albert_tf.cli.checkpoint_checks import check_checkpoint
from tests.checkpoints.comparison import change_tensors
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


def changed(file, change):
    return lambda folder: (folder / file).write_bytes(change((folder / file).read_bytes()))


def configured(file, **changes):
    return lambda folder: change_json(folder / file, **changes)


def edited(edit):
    return lambda folder: change_tensors(folder, edit)


def swapped(content):
    return content.replace(b"[CLS]", b"[???]", 1).replace(b"[SEP]", b"[CLS]", 1).replace(b"[???]", b"[SEP]", 1)


def spoilt(value):
    return edited(lambda tensors: tensors["albert.pooler.weight"].__setitem__((3, 4), value))


def with_another_vocabulary(folder):
    AlbertForMaskedLM(CONFIG.replace(vocab_size=29999)).save_pretrained(folder)


SOP_BIAS = "sop_classifier.classifier.bias"
CAPITALS = "The capital letters ABCDEFGHIJKLMNOPQRSTUVWXYZ are unknown"
DAMAGE = {
    "cut": (changed("model.safetensors", lambda content: content[:-5]), "files", "or is damaged"),
    "another config": (configured("config.json", intermediate_size=65), "weights", "kernel (32, 64) for (32, 65)"),
    "half a head": (edited(lambda tensors: tensors.pop(SOP_BIAS)), "weights", "missing sentence_order/bias"),
    "NaN": (spoilt(np.nan), "values", "NaN or infinity in encoder/pooler/kernel; download"),
    "infinity": (spoilt(-np.inf), "values", "NaN or infinity in encoder/pooler/kernel; download"),
    "another size": (with_another_vocabulary, "vocabulary", "vocab_size=29999, a vocabulary of 30000 pieces"),
    "no model": (changed("spiece.model", lambda _: b"no model"), "vocabulary", "must be a SentencePiece model"),
    "other ids": (changed("spiece.model", swapped), "special pieces", "has [CLS] at 3 for 2, [SEP] at 2 for 3; use"),
    "cased": (
        *(configured("tokenizer_config.json", do_lower_case=False), "capital letters"),
        f"{CAPITALS}; load the tokenizer with do_lower_case=True",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_fails_its_own_check(damage, folder):
    edit, name, message = DAMAGE[damage]
    edit(folder)
    assert message in finding(folder, name)


def test_no_folder_and_a_config_of_absurd_size(folder):
    assert list(failures(folder.parent / "nowhere")) == ["files", "vocabulary"]
    change_json(folder / "config.json", vocab_size=2**30)
    found, count = failures(folder), CONFIG.replace(vocab_size=2**30).num_parameters()
    assert list(found) == ["weights", "vocabulary"]
    assert f"config describes an encoder of {count:,} param" in found["weights"]


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
    assert CAPITALS in finding(folder, "capital letters")
