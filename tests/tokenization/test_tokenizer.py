"""Proves what `AlbertTokenizer` promises around its ids: batches, special pieces, folders, answers to bad input."""

import json
import pickle
import random
import subprocess
import sys
from collections import deque

import numpy as np
import pytest
import sentencepiece

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.batching import pair_lengths
from albert_tf.tokenization.files import TokenizerOptions, english_model_file
from albert_tf.tokenization.sentencepiece.model import SentencePieceModel
from albert_tf.tokenization.sentencepiece.proto import replace_charsmap

from .golden import AWKWARD_TEXTS, TINY_MODEL


@pytest.fixture(scope="module")
def tokenizer():
    return AlbertTokenizer.english()


def test_attributes(tokenizer):
    special = tuple(getattr(tokenizer, f"{name}_token_id") for name in ("pad", "unk", "cls", "sep", "mask"))
    assert special == (0, 1, 2, 3, 4)
    assert [tokenizer.pieces[i] for i in special] == ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    assert tokenizer.vocab_size == len(tokenizer.pieces) == 30_000
    assert tokenizer.start_of_word.dtype == bool
    assert tokenizer.start_of_word.shape == (30_000,)
    assert len(tokenizer) == 30_000
    assert "30,000 pieces" in repr(tokenizer)
    assert "30k-clean.model" in repr(tokenizer)
    assert "do_lower_case=True" in repr(tokenizer)


def test_a_batch_gives_what_single_texts_give(tokenizer):
    texts = [*AWKWARD_TEXTS, "The year 1999, the 3,000 men."] * 3
    for threads in (None, 1, 2):
        rows = tokenizer.encode_batch(iter(texts), num_threads=threads)
        assert [row.dtype for row in rows] == [np.int32] * len(texts)
        assert [row.tolist() for row in rows] == [tokenizer.encode(text) for text in texts]


def test_digit_comma_in_a_batch_touches_only_its_rows():
    tokenizer = AlbertTokenizer.from_pretrained(TINY_MODEL)
    texts = ["", "no digits", "3/12, 5/12,", "", "12,", "end"]
    assert [row.tolist() for row in tokenizer.encode_batch(texts)] == [tokenizer.encode(text) for text in texts]


def test_text_never_yields_special_ids(tokenizer):
    for text in ("[MASK]", "[CLS] a [SEP]", "<pad><pad>", "[ MASK ]", "[mask]", "▁[MASK]"):
        assert not {0, 2, 3, 4} & set(tokenizer.encode(text))
    assert 1 not in tokenizer.encode("[MASK] [CLS] [SEP]")


def test_inputs_of_single_texts(tokenizer):
    inputs = tokenizer(["the man was", ""])
    ids = tokenizer.encode("the man was")
    assert inputs["input_ids"].tolist() == [[2, *ids, 3], [2, 3, 0, 0, 0]]
    assert inputs["attention_mask"].tolist() == [[1] * 5, [1, 1, 0, 0, 0]]
    assert not inputs["token_type_ids"].any()
    assert {name: array.dtype for name, array in inputs.items()} == dict.fromkeys(inputs, np.dtype(np.int32))


def test_inputs_of_pairs(tokenizer):
    inputs = tokenizer(["the man", "was"], ["and", "of one day"], padding="max_length", max_length=8)
    the, man, was, and_, of, one, day = tokenizer.encode("the man was and of one day")
    assert inputs["input_ids"].tolist() == [[2, the, man, 3, and_, 3, 0, 0], [2, was, 3, of, one, day, 3, 0]]
    assert inputs["attention_mask"].tolist() == [[1, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1, 1, 0]]
    assert inputs["token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1, 1, 0]]


def test_one_text_is_a_batch_of_one(tokenizer):
    assert tokenizer("a", "b")["input_ids"].tolist() == tokenizer(["a"], ["b"])["input_ids"].tolist()


def test_an_empty_batch(tokenizer):
    assert tokenizer([])["input_ids"].shape == (0, 0)
    assert tokenizer([], padding="max_length", max_length=7)["input_ids"].shape == (0, 7)
    assert tokenizer.encode_batch([]) == []


def test_truncation_of_one_text(tokenizer):
    ids = tokenizer.encode("the man was of one day")
    assert tokenizer(["the man was of one day"], max_length=5)["input_ids"].tolist() == [[2, *ids[:3], 3]]


def test_truncation_of_pairs_pops_from_the_longer():
    draw = random.Random(0)
    for _ in range(300):
        first, second, room = draw.randrange(12), draw.randrange(12), draw.randrange(15)
        left, right = deque(range(first)), deque(range(second))
        while len(left) + len(right) > room:
            (left if len(left) > len(right) else right).pop()
        kept = pair_lengths(np.array([first]), np.array([second]), room)
        assert [lengths.tolist() for lengths in kept] == [[len(left)], [len(right)]]


def test_rows_that_may_not_be_cut_are_an_error(tokenizer):
    assert tokenizer(["the man was"], max_length=5, truncation=False)["input_ids"].shape == (1, 5)
    with pytest.raises(ValueError, match=r"row 1 with 6 ids for max_length=5"):
        tokenizer(["the", "the man was one"], max_length=5, truncation=False)


def test_decode(tokenizer):
    assert tokenizer.decode(tokenizer.encode("Hello, WORLD!")) == "hello, world!"
    assert tokenizer.decode(tokenizer(["hello world"])["input_ids"][0]) == "hello world"
    with pytest.raises(ValueError, match=r"between 0 and 29999. Received: 30000"):
        tokenizer.decode([30_000])


@pytest.mark.exhaustive
def test_decode_of_a_batch(tokenizer):
    inputs = tokenizer(["Hello world", "Bye"], max_length=8, padding="max_length")["input_ids"]
    assert inputs.shape == (2, 8)
    assert tokenizer.batch_decode(inputs) == ["hello world", "bye"]
    assert tokenizer.decode(index for index in inputs[0]) == "hello world"
    for call in (lambda: tokenizer.decode(inputs), lambda: tokenizer.batch_decode([2, 3])):
        with pytest.raises(ValueError, match="a list of integers; for several texts use `batch_decode`"):
            call()


def test_pieces_and_ids(tokenizer):
    ids = tokenizer("Hello world")["input_ids"][0]
    tokens = ["[CLS]", "▁hello", "▁world", "[SEP]"]
    assert tokenizer.convert_ids_to_tokens(ids) == tokens
    assert tokenizer.convert_tokens_to_ids(tokens) == ids.tolist()
    assert tokenizer.convert_ids_to_tokens(4) == tokenizer.convert_ids_to_tokens(np.int32(4)) == "[MASK]"
    assert tokenizer.convert_tokens_to_ids("[MASK]") == 4
    assert tokenizer.convert_tokens_to_ids(["no piece", "▁hello"]) == [tokenizer.unk_token_id, ids[1]]
    with pytest.raises(ValueError, match=r"between 0 and 29999. Received: -1"):
        tokenizer.convert_ids_to_tokens(-1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"return_tensors": "tf"}, "has no argument `return_tensors`; leave it out: the arrays are NumPy's"),
        ({"stride": 2}, "has no argument `stride`; use doc_stride"),
        ({"lenght": 8}, "has no argument `lenght`\\."),
    ],
)
def test_arguments_of_other_tokenizers_have_a_hint(tokenizer, arguments, message):
    with pytest.raises(TypeError, match=message):
        tokenizer(["a"], **arguments)


def test_padding_true_has_a_hint(tokenizer):
    with pytest.raises(ValueError, match="Received: padding=True; write padding='longest'"):
        tokenizer(["a"], padding=True)


def test_options_change_ids(tokenizer):
    cased = AlbertTokenizer.english(do_lower_case=False)
    accents = AlbertTokenizer.english(keep_accents=True)
    assert tokenizer.tokenize("Hé")[0] == "▁he"
    assert cased.encode("Hello") != tokenizer.encode("Hello")
    assert accents.encode("café") == AlbertTokenizer.english(keep_accents=True).encode("cafe\u0301")
    assert accents.encode("café") != tokenizer.encode("café")


def test_hash_tells_vocabularies_and_options_apart(tokenizer):
    others = [
        AlbertTokenizer.english(do_lower_case=False),
        AlbertTokenizer.english(keep_accents=True),
        AlbertTokenizer.english(reference_digit_comma=True),
        AlbertTokenizer.from_pretrained(TINY_MODEL),
    ]
    assert len({tokenizer.vocab_hash, *(other.vocab_hash for other in others)}) == 5
    assert tokenizer.vocab_hash == AlbertTokenizer.english().vocab_hash
    # Recorded in data manifests: a change here makes prepared data unusable.
    assert tokenizer.vocab_hash == "b32749b3f334cafd700e6cf6158bd0714da0c2115c724201b4d0eda92ccb4543"


def test_hash_tells_normalisation_rules_apart():
    proto = TINY_MODEL.read_bytes()
    with_rules, without_rules = (AlbertTokenizer(SentencePieceModel(p)) for p in (proto, replace_charsmap(proto, b"")))
    assert with_rules.encode("a\u200bb") != without_rules.encode("a\u200bb")
    assert with_rules.vocab_hash != without_rules.vocab_hash


def test_pickle_keeps_everything():
    tokenizer = AlbertTokenizer.from_pretrained(TINY_MODEL, do_lower_case=False, reference_digit_comma=True)
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.vocab_hash == tokenizer.vocab_hash
    assert copy.options == tokenizer.options


def test_saved_folder(tmp_path):
    tokenizer = AlbertTokenizer.english(do_lower_case=False, keep_accents=True)
    tokenizer.save_pretrained(tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder"
    assert sorted(path.name for path in folder.iterdir()) == ["spiece.model", "tokenizer.json", "tokenizer_config.json"]
    assert (folder / "spiece.model").read_bytes() == english_model_file().read_bytes()
    config = json.loads((folder / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "AlbertTokenizer"
    assert (config["do_lower_case"], config["keep_accents"], config["remove_space"]) == (False, True, True)
    loaded = AlbertTokenizer.from_pretrained(folder)
    assert loaded.options == TokenizerOptions(do_lower_case=False, keep_accents=True)
    assert AlbertTokenizer.from_pretrained(folder, do_lower_case=True).options.do_lower_case is True


@pytest.mark.parametrize("name", ["spiece.model", "30k-clean.model", "anything.model"])
def test_folder_with_one_model(tmp_path, name):
    (tmp_path / name).write_bytes(TINY_MODEL.read_bytes())
    (tmp_path / "tokenizer_config.json").write_text('{"model_max_length": 512}')
    assert AlbertTokenizer.from_pretrained(tmp_path).options == TokenizerOptions()
    assert AlbertTokenizer.from_pretrained(str(tmp_path / name)).vocab_size == 500


def test_path_without_a_model(tmp_path):
    with pytest.raises(ValueError, match=r"There is no vocabulary at .*nothing; pass a SentencePiece file"):
        AlbertTokenizer.from_pretrained(tmp_path / "nothing")
    with pytest.raises(ValueError, match=r"no \*.model, \*vocab"):
        AlbertTokenizer.from_pretrained(tmp_path)
    for name in ("a.model", "b.model"):
        (tmp_path / name).write_bytes(TINY_MODEL.read_bytes())
    with pytest.raises(ValueError, match=r"a.model, b.model"):
        AlbertTokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        ({}, r"lacks <pad>, \[CLS\], \[SEP\], \[MASK\]"),
        (  # a word of the text
            {
                "pad_id": 0,
                "unk_id": 1,
                "control_symbols": ["[SEP]", "[MASK]"],
                "model_type": "word",
                "add_dummy_prefix": False,
            },
            r"where \[CLS\] are not",
        ),
    ],
)
def test_model_without_albert_s_special_pieces(tmp_path, symbols, message):
    settings = {"bos_id": -1, "eos_id": -1, "minloglevel": 2, "vocab_size": 30, "hard_vocab_limit": False} | symbols
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(["[CLS] one two three four five six"] * 9), model_prefix=str(tmp_path / "m"), **settings
    )
    with pytest.raises(ValueError, match=message):
        AlbertTokenizer.from_pretrained(tmp_path)


def test_texts_that_are_no_texts(tokenizer):
    with pytest.raises(ValueError, match=r"Received: None \(NoneType\) at position 1"):
        tokenizer.encode_batch(["a", None])
    with pytest.raises(ValueError, match=r"Received: 3 \(int\)"):
        tokenizer.encode(3)
    with pytest.raises(ValueError, match="use `encode` for it"):
        tokenizer.encode_batch("abc")
    with pytest.raises(ValueError, match="2 texts and 1 pairs"):
        tokenizer(["a", "b"], ["c"])


def test_awkward_input_is_neither_lost_nor_a_crash(tokenizer):
    assert tokenizer.encode("a\ud800b") == tokenizer.encode(b"a\xed\xa0\x80b")
    assert tokenizer.unk_token_id in tokenizer.encode("a\ud800b")
    assert tokenizer.unk_token_id in tokenizer.encode(b"a\xff")
    long = "x" * 1_000_000
    assert "".join(tokenizer.tokenize(long)) == "▁" + long


def test_import_and_use_load_no_tensorflow_and_no_analyser():
    code = (
        "import sys; from albert_tf.tokenization import AlbertTokenizer; AlbertTokenizer.english().encode('a');"
        "print([name for name in ('tensorflow', 'keras', 'kiwipiepy') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
