"""Proves that `albert-tf convert` takes everything along, tells where it went, and refuses what it must."""

import json
import lzma
import pathlib
import shutil

import pytest

from albert_tf import AlbertTokenizer, checkpoints
from albert_tf.inference.folder import load_folder
from tests.checkpoints.comparison import assert_same, change_tensors
from tests.disk import change_json
from tests.parameters import first_of
from tests.toy_task import write_classifier, write_task

from .terminal import mistake, output_of, run

WORD_PIECES = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n学\n"
GOLDEN = pathlib.Path(__file__).parents[1] / "golden"


@pytest.fixture
def google(tmp_path):
    """A folder as Google published it."""
    folder = tmp_path / "albert_small"
    shutil.copytree(GOLDEN / "M1_small", folder)
    AlbertTokenizer.english().save_pretrained(tmp_path)
    (tmp_path / "spiece.model").rename(folder / "30k-clean.model")
    return folder


def test_there_and_back(google, tmp_path):
    there, back = tmp_path / "there", tmp_path / "back"
    printed = output_of("convert", google, there, "--to", "huggingface")
    assert f"32 tensors in {there}, vocabulary from {google / '30k-clean.model'}\n" in printed
    assert json.loads((there / "config.json").read_text())["architectures"] == ["AlbertForPreTraining"]
    assert AlbertTokenizer.from_pretrained(there).encode("a dog") == AlbertTokenizer.english().encode("a dog")
    output_of("convert", there, back, "--to", "google")
    assert_same(checkpoints.read(back).arrays, checkpoints.read(google).arrays)
    assert (back / "albert_config.json").read_text().split() == (google / "albert_config.json").read_text().split()
    assert (back / "30k-clean.model").read_bytes() == (google / "30k-clean.model").read_bytes()


def test_how_texts_were_read_in_finetuning_is_kept(tmp_path):
    write_task(tmp_path / "tags", "tags")
    output_of("convert", tmp_path / "tags", tmp_path / "new", "--to", "huggingface")
    found = load_folder(tmp_path / "new")
    assert (found.settings.max_length, found.settings.doc_stride, found.settings.tag_words) == (48, 16, True)


@pytest.mark.parametrize(
    ("source", "architecture"),
    [
        ("M3_heads/classifier", "AlbertForSequenceClassification"),
        ("M3_heads/squad_v2", "AlbertForQuestionAnswering"),
        ("hf_for_token_classification", "AlbertForTokenClassification"),
        ("hf_model", "AlbertModel"),
    ],
)
def test_heads(source, architecture, tmp_path):
    source = GOLDEN / source
    assert "no vocabulary found" in output_of("convert", source, tmp_path / "new", "--to", "huggingface")
    found, expected = checkpoints.read(tmp_path / "new"), checkpoints.read(source)
    assert_same(found.arrays, expected.arrays)
    assert found.settings["architectures"] == [architecture]
    assert found.settings.get("id2label") == expected.settings.get("id2label")


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("default::UserWarning")  # printed, as a user sees it
def test_what_the_layout_cannot_say_is_one_sentence(tmp_path):
    source, new = GOLDEN / "keras_hub_masked_lm" / "preset", tmp_path / "new"
    code, _, err = run("convert", source, new, "--to", "huggingface")
    assert (code, len(err.splitlines())) == (0, 1)
    assert err.startswith("albert-tf: transformers would compute different masked-LM logits")
    assert checkpoints.read(new).config == checkpoints.read(source).config


def test_a_vocabulary_of_words(google, tmp_path):
    (google / "30k-clean.model").unlink()
    (google / "vocab_chinese.txt").write_text(WORD_PIECES)
    (google / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    for layout in ("google", "huggingface"):
        output_of("convert", google, tmp_path / layout, "--to", layout)
        assert (tmp_path / layout / "vocab.txt").read_text() == WORD_PIECES
    tokenizer = AlbertTokenizer.from_pretrained(tmp_path / "huggingface")
    assert tokenizer.encode("ab A 学") == [5, 6, 1, 7]


@pytest.mark.parametrize(
    ("kind", "google_file", "huggingface_file"),
    first_of([("wordpiece", "vocab.txt", "vocab.txt"), ("unigram", "30k-clean.model", "spiece.model")]),
)
def test_a_lone_tokenizer_json_becomes_a_vocabulary_file(google, tmp_path, kind, google_file, huggingface_file):
    (google / "30k-clean.model").unlink()
    saved = GOLDEN / "hf_tokenizer_json" / kind
    packed = saved / "tokenizer.json.xz"
    content = lzma.decompress(packed.read_bytes()) if packed.exists() else (saved / "tokenizer.json").read_bytes()
    (google / "tokenizer.json").write_bytes(content)
    expected = AlbertTokenizer.from_pretrained(google).vocab_hash
    for layout, file in (("google", google_file), ("huggingface", huggingface_file)):
        output_of("convert", google, tmp_path / layout, "--to", layout)
        assert (tmp_path / layout / file).is_file()
        assert AlbertTokenizer.from_pretrained(tmp_path / layout).vocab_hash == expected


def test_mistakes(google, tmp_path):
    new, whole, data = tmp_path / "new", tmp_path / "whole", google / "model.ckpt.data-00000-of-00001"
    erf = GOLDEN / "hf_groups2_inner2_for_pretraining"
    output_of("convert", google, whole, "--to", "huggingface")
    change_tensors(whole, lambda tensors: tensors.pop("albert.encoder.embedding_hidden_mapping_in.bias"))
    assert "missing encoder/projection/bias" in mistake("convert", whole, new, "--to", "google")
    (google / "albert_config.json").chmod(0o644)
    change_json(google / "albert_config.json", vocab_size=77)
    sentence = mistake("convert", google, new, "--to", "huggingface")
    assert "encoder/embeddings/word_embeddings (120, 16) for (77, 16)" in sentence
    data.write_bytes(data.read_bytes()[:9000])
    assert "could not be read (" in mistake("convert", google, new, "--to", "huggingface")
    assert "check the spelling" in mistake("convert", tmp_path / "nowhere", new, "--to", "google")
    assert "must have the tanh form of GELU" in mistake("convert", erf, new, "--to", "google")
    assert not new.exists()
    assert "is not empty; use another folder" in mistake("convert", google, google, "--to", "huggingface")


def test_names_of_labels_that_are_lost_are_told(tmp_path):
    write_classifier(tmp_path / "moods")
    write_classifier(tmp_path / "unnamed", labels=["LABEL_0", "LABEL_1"])
    for name, to, is_lost in (("moods", "google", True), ("moods", "huggingface", False), ("unnamed", "google", False)):
        code, _, err = run("convert", tmp_path / name, tmp_path / f"{name}-{to}", "--to", to)
        assert code == 0
        assert ("gloomy, mixed, pleasant are lost" in err) == is_lost, err
