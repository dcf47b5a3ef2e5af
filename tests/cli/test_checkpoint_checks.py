"""Proves that every check of a checkpoint passes on a sound folder, and that its own damage is said."""

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


def problem(folder, name):
    """What is wrong, where all checks before this one pass."""
    checks, passed = check_checkpoint(folder), []
    with pytest.raises(ValueError) as error:  # noqa: PT011
        passed.extend(check for check, _ in checks)
    assert passed == OF_A_SOUND_FOLDER[: OF_A_SOUND_FOLDER.index(name)]
    return str(error.value)


def test_a_sound_folder(folder):
    found = dict(check_checkpoint(folder))
    assert list(found) == OF_A_SOUND_FOLDER
    assert found["files"] == f"32 tensors with {CONFIG.num_parameters('pretraining'):,} values can be read."
    assert found["weights"] == "Every tensor is used: encoder, masked_lm, sentence_order."
    assert found["capital letters"] == "All are known."


@pytest.mark.parametrize(
    "source",
    [
        *("M2_groups", "M3_heads/squad_v2", "M3_heads/race", "hf_for_token_classification"),
        *("hf_groups2_inner2_for_pretraining", "hf_model_no_pooler"),
    ],
)
def test_weights_of_every_kind_and_head(source):
    assert problem(GOLDEN / source, "vocabulary").endswith("such as spiece.model, 30k-clean.model or vocab.txt.")


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
    assert message in problem(folder, name)


def test_a_config_of_absurd_size(folder):
    change_json(folder / "config.json", vocab_size=2**30)
    count = CONFIG.replace(vocab_size=2**30).num_parameters()
    assert f"config describes an encoder of {count:,} param" in problem(folder, "weights")


@pytest.mark.exhaustive
def test_vocabularies_where_tf_hub_and_kerashub_keep_them(folder):
    for place in ("assets/30k-clean.model", "assets/tokenizer/vocabulary.spm"):
        shutil.rmtree(folder / "assets", ignore_errors=True)
        (folder / place).parent.mkdir(parents=True)
        shutil.copy(ROOT / "albert_tf" / "assets" / "30k-clean.model", folder / place)
        (folder / "spiece.model").unlink(missing_ok=True)
        assert len(list(check_checkpoint(folder))) == 6


def test_a_list_of_word_pieces(folder):
    (folder / "spiece.model").unlink()
    (folder / "tokenizer_config.json").unlink()
    small = [*"abcdefghijklmnopqrstuvwxyz", *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")]
    pieces = ["[PAD]", *(f"[unused{i}]" for i in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]", *small]
    pieces += [f"字{i}" for i in range(CONFIG.vocab_size - len(pieces))]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    assert dict(check_checkpoint(folder))["special pieces"] == "[PAD] 0, [UNK] 100, [CLS] 101, [SEP] 102, [MASK] 103."
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert CAPITALS in problem(folder, "capital letters")
