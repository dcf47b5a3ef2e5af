"""Proves that every check of a checkpoint passes on a sound folder and fails, by name and alone, on its own damage."""

import json
import shutil

import numpy as np
import pytest
import safetensors.numpy

from albert_tf import AlbertConfig, AlbertEncoder, AlbertForMaskedLM
from albert_tf.cli.checkpoint_checks import PUBLISHED, PublishedModel, PublishedOutput, check_checkpoint
from tests.conftest import ROOT
from tests.toy_task import CONFIG, tokenizer

GOLDEN = ROOT / "tests" / "golden"
IDS = (2, 13, 1, 3)
OF_A_SOUND_FOLDER = ["files", "weights", "values", "vocabulary", "special pieces", "capital letters"]


@pytest.fixture
def folder(folders, tmp_path):
    return shutil.copytree(folders["pretrained"], tmp_path / "some_model")


def failures(folder, **arguments):
    return {check.name: check.finding for check in check_checkpoint(folder, **arguments) if not check.passed}


def finding(folder, name, **arguments):
    """Of a check that fails alone."""
    found = failures(folder, **arguments)
    assert list(found) == [name]
    assert "\n" not in found[name]
    return found[name]


def change_tensors(folder, edit):
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    edit(tensors)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")


def change_json(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


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


# === Published outputs ===


@pytest.fixture
def published(folder):
    """A publication of the folder's own outputs, as its model gives them on ids alone."""
    encoder, masked_lm = AlbertEncoder.from_pretrained(folder), AlbertForMaskedLM.from_pretrained(folder)
    inputs = {"input_ids": np.array([IDS])}
    outputs, logits = encoder(inputs), np.asarray(masked_lm(inputs)["logits"])
    masked = encoder({**inputs, "attention_mask": np.array([[0, 1, 1, 1]])})["sequence_output"]
    corner = (slice(1, 4), slice(2))
    slices = (
        PublishedOutput(
            "encoder", "sequence_output", IDS, corner, np.array(outputs["sequence_output"])[0][corner], 1e-5
        ),
        PublishedOutput("encoder", "sequence_output", IDS, corner, np.array(masked)[0][corner], 1e-5, (0, 1, 1, 1)),
        PublishedOutput("pooler", "pooled_output", IDS, (slice(5),), np.array(outputs["pooled_output"])[0, :5], 1e-5),
        PublishedOutput("masked_lm", "logits", IDS, corner, logits[0][corner], 1e-5),
    )
    return (PublishedModel(("some_model",), CONFIG, slices),)


def further_trained(folder):
    def move(tensors):
        tensors["albert.pooler.bias"][:] += 1

    change_tensors(folder, move)


def test_published_outputs_are_reproduced(folder, published):
    *_, check = check_checkpoint(folder, published)
    assert (check.name, check.passed) == ("published", True)
    assert check.finding.startswith("4 published outputs of some_model are reproduced, within ")


@pytest.mark.exhaustive
def test_a_model_by_its_outputs_under_any_name(folder, published, tmp_path):
    shutil.move(folder, tmp_path / "renamed")
    assert "published" in {check.name for check in check_checkpoint(tmp_path / "renamed", published)}
    further_trained(tmp_path / "renamed")
    assert [check.name for check in check_checkpoint(tmp_path / "renamed", published)] == OF_A_SOUND_FOLDER


@pytest.mark.parametrize("place", ["models--x--Some-Model/snapshots/a1", "some_model"])
def test_other_outputs_under_the_same_name(place, folder, published, tmp_path):
    further_trained(folder)
    shutil.copytree(folder, tmp_path / "copies" / place)
    found = finding(tmp_path / "copies" / place, "published", published=published)
    assert found.startswith("pooled_output differs by ")


def test_another_shape_under_the_same_name(folder, published):
    other = (published[0]._replace(config=CONFIG.replace(num_hidden_layers=3)),)
    assert "The config differs from that of some_model: num_hidden_layers=2" in finding(
        folder, "published", published=other
    )


def test_a_classifier_made_of_it_is_no_failure(folders, published, tmp_path):
    folder = shutil.copytree(folders["classifier"], tmp_path / "x" / "some_model")
    assert not failures(folder, published=published)


@pytest.mark.exhaustive
def test_the_published_text(folder, published):
    sound = (published[0]._replace(ids=PUBLISHED[0].ids),)
    *_, check = check_checkpoint(folder, sound)
    assert (check.name, check.passed) == ("published text", True)
    ((text, ids),) = PUBLISHED[0].ids.items()
    found = failures(folder, published=(published[0]._replace(ids={text: (2, 14, 2231, 3)}),))
    assert list(found) == ["published text"]
    assert f"has the ids {ids}, but (2, 14, 2231, 3) were published; use" in found["published text"]


def test_what_is_published_fits_its_shapes():
    (base,) = PUBLISHED
    assert base.config == AlbertConfig.from_preset("base_v2")
    widths = {"sequence_output": 768, "pooled_output": 768, "logits": 30000}
    for item in base.outputs:
        shape = (768,) if item.part == "pooler" else (len(item.input_ids), widths[item.output])
        assert np.zeros(shape)[item.place].shape == np.shape(item.expected)
        assert max(item.input_ids) < tokenizer().vocab_size
        assert len(item.attention_mask) in (0, len(item.input_ids))
