"""Proves that the layer in the graph gives the Python tokenizer's arrays, and that a SavedModel carries it along."""

import functools
import itertools
import random
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.tokenization import AlbertTokenizer, train_sentencepiece
from tests.parameters import first_of

from .code_points import assigned_code_points
from .golden import AWKWARD_TEXTS, TINY_MODEL, is_tie, read_lines, small_tokenizer, spelling_bytes, train_plainly
from .wordpiece_golden import korean

LONG = 2_000_000


def untied_lines():
    """Lines of which Python and the graph give the same ids: all but one, of which two splits have equal scores."""
    texts = [line["text"] for line in read_lines("T1b_digit_comma")]
    assert len(texts) == 418
    return texts[:136] + texts[137:]


@functools.cache
def english(**options):
    return AlbertTokenizer.english(**options)


@functools.cache
def tiny():
    return AlbertTokenizer.from_pretrained(TINY_MODEL)


LOADERS = {
    "lower": english,
    "digit_comma": tiny,
    "bytes": spelling_bytes,
    "cased": lambda: english(do_lower_case=False),
    "accents": lambda: english(keep_accents=True),
}


def _as_bytes(texts):
    """TensorFlow holds bytes; lone surrogates are passed on as Python's tokenizer passes them on."""
    return [text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass") for text in texts]


@functools.cache
def _layer(tokenizer, **layout):
    return tokenizer.as_layer(**layout)


def _assert_same(tokenizer, texts, pairs=None, **layout):
    """Equal arrays, but for rows of a single text where two ways to split it have exactly equal scores."""
    wanted = tokenizer(texts, pairs, **layout)
    tensors = tf.constant(_as_bytes(texts), tf.string)
    if pairs is not None:
        tensors = (tensors, tf.constant(_as_bytes(pairs), tf.string))
    got = _layer(tokenizer, **layout)(tensors)
    assert got.keys() == wanted.keys()
    assert all(array.dtype == tf.int32 for array in got.values())
    same = np.ones(len(texts), bool)
    if pairs is None and "overflow_to_sample_mapping" not in wanted:
        ids = [_unpadded(arrays["input_ids"], arrays["attention_mask"]) for arrays in (got, wanted)]
        same = np.array([list(row) == list(other) for row, other in zip(*ids, strict=True)], bool)
        for row, other in (pair for pair, is_same in zip(zip(*ids), same) if not is_same):
            assert is_tie(tokenizer, row, other)
    for name, array in wanted.items():
        if same.all():
            np.testing.assert_array_equal(got[name], array, err_msg=name)
        elif got[name].shape == array.shape:
            np.testing.assert_array_equal(got[name].numpy()[same], array[same], err_msg=name)


def _unpadded(ids, mask):
    return [row[: int(count)].tolist() for row, count in zip(np.asarray(ids), np.sum(mask, axis=1))]


SAMPLES = Path(__file__).parents[2] / "training" / "sample_data"


def _count_ties(tokenizer, folder):
    """Encodes each line in Python and in the graph; returns how many lines there are, and how many differ."""
    lines = [line for file in sorted((SAMPLES / folder).glob("*.txt")) for line in file.read_text("utf-8").splitlines()]
    lines = [line.strip() for line in lines if line.strip()]
    differing, tokenize = 0, tf.function(tokenizer._model.in_graph().tokenize)
    for start in range(0, len(lines), 1024):
        block = lines[start : start + 1024]
        for row, wanted in zip(tokenize(tf.constant(block)).to_list(), tokenizer.encode_batch(block), strict=True):
            if row != wanted.tolist():
                assert is_tie(tokenizer, row, wanted.tolist())
                differing += 1
    return len(lines), differing


@pytest.mark.parametrize(("folder", "lines", "ties"), first_of([("nsmc", 38_384, 66), ("novels", 15_807, 0)]))
def test_python_and_graph_differ_only_where_scores_are_equal(folder, lines, ties):
    assert _count_ties(english(), folder) == (lines, ties)


@pytest.mark.exhaustive
def test_korean_under_a_vocabulary_of_its_own(tmp_path):
    train_sentencepiece(sorted((SAMPLES / "nsmc").glob("*.txt")), tmp_path, 8000, keep_accents=True)
    assert _count_ties(AlbertTokenizer.from_pretrained(tmp_path), "nsmc") == (38_384, 1)


@pytest.mark.parametrize(
    ("load", "do_lower_case"), first_of([(english, True), (english, False), (spelling_bytes, False)])
)
def test_recorded_lines(load, do_lower_case):
    tokenizer = load(do_lower_case=do_lower_case)
    texts = _as_bytes([line["text"] for line in read_lines("T1_tokenize")])
    _assert_same(tokenizer, texts, max_length=LONG, return_offsets=True)


@pytest.mark.parametrize("reference_digit_comma", [False, True])
def test_recorded_lines_of_the_digit_comma_rule(reference_digit_comma):
    tokenizer = AlbertTokenizer.from_pretrained(TINY_MODEL, reference_digit_comma=reference_digit_comma)
    _assert_same(tokenizer, [line["text"] for line in read_lines("T1b_digit_comma")], max_length=LONG)


def _assert_same_around(tokenizer, codes):
    characters = [chr(code).encode("utf-8", "surrogatepass") for code in codes]
    for start in range(0, len(characters), 1 << 17):
        _assert_same(tokenizer, [b"a" + character + b"b" for character in characters[start : start + (1 << 17)]])


def test_some_code_points():
    _assert_same_around(english(), [*range(0x600), *range(0x600, 0x110000, 211)])


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["lower", "bytes"])  # test_charsmap.py tries the other clean-ups
def test_assigned_code_points(kind):
    _assert_same_around(LOADERS[kind](), assigned_code_points())


@pytest.mark.parametrize("kind", ["lower", "digit_comma", "bytes"])
def test_awkward_texts(kind):
    _assert_same(
        LOADERS[kind](), [*AWKWARD_TEXTS, b"\xff\xfe", b"\xc0\x80a", b"\xe2\x82", "x" * 50_000], max_length=LONG
    )


@pytest.mark.exhaustive
@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(st.text(max_size=40) | st.text("19,/ 2３½é가\u1100\u1161"), min_size=8, max_size=8))
def test_any_text(texts):
    for tokenizer in [load() for load in LOADERS.values()]:
        _assert_same(tokenizer, texts)


def test_pairs_and_truncation():
    texts = [line["text"] for line in read_lines("T1b_digit_comma")][:120]  # none of which has a tie
    for max_length in (3, 4, 5, 8, 17, 64):
        for padding in ("longest", "max_length"):
            _assert_same(tiny(), texts, max_length=max_length, padding=padding)
            _assert_same(tiny(), texts, texts[::-1], max_length=max_length, padding=padding)


def test_an_empty_batch():
    _assert_same(english(), [])
    _assert_same(english(), [], [], padding="max_length", max_length=9)


def _train(folder, texts, **settings):
    (folder / "spiece.model").write_bytes(train_plainly(texts, **settings))
    return AlbertTokenizer.from_pretrained(folder)


@pytest.mark.parametrize(
    "settings",
    first_of(
        [
            {"model_type": "bpe"},
            {"model_type": "bpe", "byte_fallback": True},
            {"add_dummy_prefix": False, "byte_fallback": True},
            {"treat_whitespace_as_suffix": True},
        ]
    ),
    ids=str,
)
def test_other_kinds_of_models(settings):
    tokenizer = small_tokenizer(**settings)
    texts = [line["lower"] for line in read_lines("T1_tokenize")[:400]]
    _assert_same(tokenizer, _as_bytes([" 漢", *texts, *AWKWARD_TEXTS]), max_length=LONG, return_offsets=True)


def test_parts_of_pieces_that_are_spelled_in_bytes():
    """The digit-comma rule splits a piece, and what is in front of its comma is no piece."""
    tokenizer = small_tokenizer(byte_fallback=True, user_defined_symbols=["\u0663,", "@9,", "漢9,"])
    assert tokenizer.tokenize("\u0663,")[-3:] == ["<0xD9>", "<0xA3>", ","]
    draw = random.Random(0)
    parts = ["\u0663,", "@9,", "漢9,", "a", " ", "漢", "é"]
    texts = ["".join(draw.choices(parts, k=draw.randrange(12))) for _ in range(500)]
    _assert_same(tokenizer, texts)
    wanted = tokenizer(["a\u0663,b"], return_offsets=True)["offsets"][0].tolist()
    assert wanted[-6:] == [[0, 1], [1, 3], [1, 3], [1, 3], [3, 4], [0, 0]]
    _assert_same(tokenizer, _as_bytes(texts), return_offsets=True)


def test_with_byte_fallback_no_text_is_unknown():
    tokenizer = spelling_bytes()
    for allow_special in (False, True):
        row = tokenizer("<unk> \U0010fff8", allow_special=allow_special)["input_ids"][0, 1:-1]
        assert tokenizer.decode(row.tolist()) == "<unk> \U0010fff8"


def test_in_a_dataset_and_in_a_functional_model():
    texts = untied_lines()
    layer = tiny().as_layer(max_length=32, padding="max_length")
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(100).map(layer)
    assert dataset.element_spec["input_ids"].shape.as_list() == [None, 32]
    wanted = tiny()(texts, max_length=32, padding="max_length")["input_ids"]
    np.testing.assert_array_equal(np.concatenate([batch["input_ids"] for batch in dataset]), wanted)
    inputs = keras.Input((), dtype="string")
    model = keras.Model(inputs, layer(inputs)["input_ids"])
    np.testing.assert_array_equal(model(tf.constant(texts)), wanted)


@pytest.mark.parametrize("load", [tiny, korean], ids=["sentencepiece", "wordpiece"])
@pytest.mark.parametrize("options", [{"return_offsets": True}, {"allow_special": True}], ids=str)
def test_layers_and_saved_models_outlive_a_new_seed(load, options, tmp_path):
    layer, texts = load().as_layer(**options), tf.constant(["the word [MASK]"])
    module = tf.Module()
    module.layer = layer
    module.tokenize = tf.function(layer.call, input_signature=[tf.TensorSpec([None], tf.string)])
    datasets = [tf.data.Dataset.from_tensors(texts).map(layer)]
    wanted = layer(texts)
    tf.saved_model.save(module, tmp_path)
    calls = {"eager": layer, "function": module.tokenize, "loaded": tf.saved_model.load(tmp_path).tokenize}
    keras.utils.set_random_seed(1)
    datasets.append(tf.data.Dataset.from_tensors(texts).map(layer))
    results = [*(call(texts) for call in calls.values()), *(next(iter(dataset)) for dataset in datasets)]
    for result, name in itertools.product(results, wanted):
        np.testing.assert_array_equal(result[name], wanted[name])


def test_shapes_that_are_no_batch_of_texts():
    layer, one, two = english().as_layer(), tf.constant(["a"]), tf.constant(["a", "b"])
    for wrong in (tf.constant("a"), tf.constant([["a"]]), (one,) * 3, tf.constant([1]), (one, two), (two, one)):
        with pytest.raises(ValueError, match=r"`texts` must be one or two string tensors of shape \[B\]"):
            layer(wrong)
    unknown = tf.TensorSpec([None], tf.string)
    in_graph = tf.function(lambda *texts: layer(texts)["input_ids"], input_signature=[unknown, unknown])
    assert in_graph(one, one).shape == (1, 5)
    for wrong in ((one, two), (two, one)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="`texts` must have as many second texts as first"):
            in_graph(*wrong)


class _Served(tf.Module):
    """What an export does with the layer: raw strings in, arrays out."""

    def __init__(self, tokenizer):
        super().__init__()
        self.layer = tokenizer.as_layer()

    @tf.function
    def __call__(self, texts):
        return self.layer(texts)


RELOAD = """
import sys
import numpy as np
import tensorflow as tf
import tensorflow_text
texts = np.load("texts.npy")
for name in sys.argv[1:]:
    served = tf.saved_model.load(name)
    for batch in (texts, texts[:1], texts[:0]):
        got = served.signatures["serving_default"](tf.constant(batch, tf.string))
        np.save(f"{name}.{len(batch)}.npy", got["input_ids"])
assert not any(name.startswith("albert_tf") for name in sys.modules)
"""


@pytest.mark.exhaustive
def test_saved_models_without_this_package(tmp_path):
    texts = untied_lines()
    tokenizers = {"unigram": tiny(), "bpe": _train(tmp_path, texts, vocab_size=300, model_type="bpe")}
    for name, tokenizer in tokenizers.items():
        served = _Served(tokenizer)
        signature = served.__call__.get_concrete_function(tf.TensorSpec([None], tf.string, name="texts"))
        tf.saved_model.save(served, str(tmp_path / name), signatures=signature)
    np.save(tmp_path / "texts.npy", np.array(_as_bytes(texts)))
    subprocess.run([sys.executable, "-c", RELOAD, *tokenizers], check=True, cwd=tmp_path, capture_output=True)
    for name, tokenizer in tokenizers.items():
        for batch in (texts, texts[:1], []):
            got = np.load(tmp_path / f"{name}.{len(batch)}.npy")
            np.testing.assert_array_equal(got, tokenizer(batch)["input_ids"])


def test_of_a_long_text_the_part_that_can_be_used_is_read():
    """Unknown characters take time in the square of their number in the graph; a run of them is one id."""
    tokenizer = english()
    unknown = "\u0e01" * 65_535
    texts = [unknown + "a b", "\u0e01" * 1_400_000, "a" + " " * 65_533 + "bc"]
    _assert_same(tokenizer, texts)
    _assert_same(tokenizer, texts[2:], pairs=["one"], max_length=16)
    assert tokenizer.encode(texts[0])[:-1] == tokenizer(texts[0])["input_ids"][0, 1:-1].tolist()
    untruncated = tokenizer(texts[:1], max_length=LONG)["input_ids"], tokenizer(texts[:1], doc_stride=8)["input_ids"]
    assert all(ids.shape[1] == len(tokenizer.encode(texts[0])) + 2 for ids in untruncated)
