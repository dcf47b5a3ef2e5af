"""Proves how rows of ids become a batch: windows as the reference cuts them, padding to a multiple, mistakes."""

import gzip
import json

import numpy as np
import pytest

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.batching import BatchLayout, TokenRows, build_inputs
from albert_tf.tokenization.interface import SpecialPieceIds
from tests.tokenization.golden import GOLDEN

SPECIAL = SpecialPieceIds(pad=0, unk=1, cls=2, sep=3, mask=4)
ARTICLE = "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness"


@pytest.fixture(scope="module")
def tokenizer():
    return AlbertTokenizer.english()


def _rows(*lengths):
    return TokenRows([np.arange(10, 10 + length, dtype=np.int32) for length in lengths])


def _read(name):
    with gzip.open(GOLDEN / "Q1_squad_features" / name, "rt", encoding="utf-8") as file:
        return file.read()


@pytest.mark.parametrize(
    ("name", "windows", "max_length", "doc_stride", "question_length"),
    [("squad_v2", 270, 384, 128, 64), ("xquad_en", 112, 384, 128, 64), ("squad_v2_short", 287, 128, 48, 12)],
)
def test_windows_of_the_reference(tokenizer, name, windows, max_length, doc_stride, question_length):
    articles = [paragraph for page in json.loads(_read(f"{name}.json.gz"))["data"] for paragraph in page["paragraphs"]]
    texts = [(question["question"], article["context"]) for article in articles for question in article["qas"]]
    questions = TokenRows([row[:question_length] for row in tokenizer.encode_batch([text for text, _ in texts])])
    contexts = TokenRows(tokenizer.encode_batch([context for _, context in texts]))
    layout = BatchLayout(max_length, "max_length", doc_stride=doc_stride)
    inputs = build_inputs(questions, contexts, SPECIAL, layout)
    recorded = [json.loads(line) for line in _read(f"{name}.features.jsonl.gz").splitlines()]
    assert len(recorded) == len(inputs["input_ids"]) == windows
    for index, window in enumerate(recorded):
        length = window["length"]
        assert inputs["input_ids"][index].tolist() == window["input_ids"] + [0] * (max_length - length)
        assert inputs["attention_mask"][index].tolist() == [1] * length + [0] * (max_length - length)
        types = "".join(map(str, inputs["token_type_ids"][index].tolist()))
        assert types == window["segment_ids"] + "0" * (max_length - length)
        assert inputs["overflow_to_sample_mapping"][index] == window["example_index"]


def test_windows_of_one_text_leave_nothing_out(tokenizer):
    ids = tokenizer.encode(ARTICLE)
    inputs = tokenizer([ARTICLE, "", "it was"], max_length=10, doc_stride=5, return_offsets=True)
    starts = range(0, len(ids) - 8 + 5, 5)
    windows = [ids[start : start + 8] for start in starts]
    assert windows[-1][-1] == ids[-1]
    assert inputs["overflow_to_sample_mapping"].tolist() == [0] * len(starts) + [1, 2]
    assert inputs["overflow_to_sample_mapping"].dtype == np.int32
    for row, mask, window in zip(inputs["input_ids"].tolist(), inputs["attention_mask"], windows, strict=False):
        assert row == [2, *window, 3] + [0] * (8 - len(window))
        assert mask.sum() == len(window) + 2
    whole = tokenizer([ARTICLE], return_offsets=True)["offsets"][0, 1:-1]
    for offsets, start, window in zip(inputs["offsets"], starts, windows, strict=False):
        assert offsets[1 : 1 + len(window)].tolist() == whole[start : start + len(window)].tolist()
    assert inputs["input_ids"][-2:, :4].tolist() == [[2, 3, 0, 0], [2, *tokenizer.encode("it was"), 3]]


def test_of_a_pair_the_second_text_is_spread(tokenizer):
    question, ids = tokenizer.encode("what was it"), tokenizer.encode(ARTICLE)
    inputs = tokenizer("what was it", ARTICLE, max_length=14, doc_stride=4)
    capacity = 14 - 3 - len(question)
    for index, row in enumerate(inputs["input_ids"]):
        window = ids[4 * index : 4 * index + capacity]
        assert row[: inputs["attention_mask"][index].sum()].tolist() == [2, *question, 3, *window, 3]
        assert inputs["token_type_ids"][index].sum() == len(window) + 1
    assert window[-1] == ids[-1]


def test_a_stride_beyond_the_capacity_is_the_capacity():
    inputs = build_inputs(_rows(4), _rows(7), SPECIAL, BatchLayout(10, doc_stride=8))
    assert inputs["input_ids"].tolist() == [
        [2, 10, 11, 12, 13, 3, 10, 11, 12, 3],
        [2, 10, 11, 12, 13, 3, 13, 14, 15, 3],
        [2, 10, 11, 12, 13, 3, 16, 3, 0, 0],
    ]


@pytest.mark.parametrize(("length", "padded"), [(0, 8), (5, 8), (6, 8), (7, 16), (40, 24)])
def test_padding_to_a_multiple(length, padded):
    inputs = build_inputs(_rows(length, 0), None, SPECIAL, BatchLayout(24, pad_to_multiple_of=8))
    assert {array.shape for array in inputs.values()} == {(2, padded)}
    assert inputs["attention_mask"].sum() == min(length, 22) + 2 + 2
    for layout in (BatchLayout(16, pad_to_multiple_of=8), BatchLayout(16, doc_stride=4)):
        assert build_inputs(_rows(), None, SPECIAL, layout)["input_ids"].shape == (0, 0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pad_to_multiple_of": 7}, r"an integer that divides `max_length`\. Received: pad_to_multiple_of=7"),
        ({"pad_to_multiple_of": 0}, "Received: pad_to_multiple_of=0 for max_length=16"),
        ({"doc_stride": 0}, "from 1 to `max_length` - 2.* Received: doc_stride=0 for max_length=16"),
        *(({"doc_stride": wrong}, f"Received: doc_stride={wrong}") for wrong in (15, True)),
        ({"padding": "no"}, "`padding` must be"),
        *(({"max_length": wrong}, "`max_length` must be") for wrong in (2, 8.0, True)),
    ],
)
def test_layouts_that_cannot_be(tokenizer, wrong, message):
    with pytest.raises(ValueError, match=message):
        tokenizer("a", **{"max_length": 16, **wrong})
    with pytest.raises(ValueError, match=message):
        tokenizer.as_layer(**{"max_length": 16, **wrong})


def test_a_first_text_without_space_for_the_second(tokenizer):
    with pytest.raises(ValueError, match=r"must leave space.* Received: row 1 with 4 ids for max_length=7; raise"):
        tokenizer(["a", "it was the age"], [ARTICLE] * 2, max_length=7, doc_stride=2)


def test_numbers_may_be_numpys(tokenizer):
    layout = {"max_length": np.int64(6), "doc_stride": np.int32(2), "pad_to_multiple_of": np.int64(3)}
    plain = {name: int(value) for name, value in layout.items()}
    np.testing.assert_array_equal(tokenizer(ARTICLE, **layout)["input_ids"], tokenizer(ARTICLE, **plain)["input_ids"])
    assert json.dumps(tokenizer.as_layer(**layout).get_config()["layout"])
