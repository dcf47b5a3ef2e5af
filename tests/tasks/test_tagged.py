"""Tagged texts: files, labels of tokens, windows of long texts."""

import json

import numpy as np
import pytest

from albert_tf.tasks.token_classification.files import read_tagged
from albert_tf.tasks.token_classification.tagged import TaggedText, encode_tagged, first_tokens, tag_names
from albert_tf.tokenization import AlbertTokenizer

CONLL = """-DOCSTART- -X- O O

EU NNP B-ORG
rejects VBZ O
German JJ B-MISC
call NN O

Peter\tNNP\tB-PER
Blackburn\tNNP\tI-PER
"""


@pytest.fixture(scope="module")
def tokenizer():
    return AlbertTokenizer.english()


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return path


def span(start, end, label):
    return {"start": start, "end": end, "label": label}


def test_columns(tmp_path):
    first, second = read_tagged(write(tmp_path / "a.conll", CONLL))
    assert first.text == "EU rejects German call"
    assert [first.text[slice(*word)] for word in first.words] == first.text.split()
    assert first.tags == ("B-ORG", "O", "B-MISC", "O")
    assert (second.text, second.tags, second.where) == (
        "Peter Blackburn",
        ("B-PER", "I-PER"),
        f"{tmp_path / 'a.conll'}, line 8",
    )
    assert tag_names([first, second]) == ("O", "B-MISC", "B-ORG", "B-PER", "I-PER")


def test_comments_in_front_of_texts_are_skipped(tmp_path):
    content = "a DT O\n\n# id 123 domain=en\nb NN B-X\n# NN O\n"
    texts = read_tagged(write(tmp_path / "a.conll", content))
    assert [text.text for text in texts] == ["a", "b #"]


def test_the_first_word_may_begin_like_a_comment(tmp_path):
    (text,) = read_tagged(write(tmp_path / "a.conll", "#Paris\tB-LOC\nis\tO\n"))
    assert (text.text, text.tags) == ("#Paris is", ("B-LOC", "O"))


@pytest.mark.parametrize("content", ["EU NNP\nrejects VBZ\n\nPeter NNP\n", "EU\nrejects\n\nPeter\n"])
def test_columns_to_predict_need_no_tags(tmp_path, content):
    texts = read_tagged(write(tmp_path / "a.conll", content), labelled=False)
    assert [(text.text, text.tags) for text in texts] == [("EU rejects", ("O", "O")), ("Peter", ("O",))]


def test_columns_are_not_read_as_texts(tmp_path):
    with pytest.raises(ValueError, match=r"a\.txt has a word and its tag .*rename it to \.conll"):
        read_tagged(write(tmp_path / "a.txt", CONLL), labelled=False)


CONLLU = """# sent_id = 1
# text = Don't go
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVBP\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_
3.1\tnow\tnow\tADV\t_\t_\t_\t_\t_\t_

1\tO\tO\tINTJ\tUH\t_\t0\troot\t_\t_
"""


def test_words_and_parts_of_speech_of_conllu(tmp_path):
    path = write(tmp_path / "a.conllu", CONLLU)
    texts = read_tagged(path)
    assert [(text.text, text.tags) for text in texts] == [("Do n't go", ("AUX", "PART", "VERB")), ("O", ("INTJ",))]
    assert texts.form == "2 texts (CoNLL-U, words and UPOS)"
    assert tag_names(texts) == ("AUX", "INTJ", "PART", "VERB")
    assert [text.text for text in read_tagged(path, labelled=False)] == ["Do n't go", "O"]
    with pytest.raises(ValueError, match="line 7: the tag 'B' must be written as"):
        read_tagged(write(tmp_path / "b.conllu", CONLLU.replace("ADV\t_", "B\t_").replace("3.1", "4")))


@pytest.mark.parametrize(
    "row", [{"tokens": ["the", "dog"], "upos": ["DET", "NOUN"]}, {"words": ["the"], "tags": ["NE"]}]
)
def test_labels_without_o_are_of_words(tmp_path, row):
    (text,) = read_tagged(write(tmp_path / "a.jsonl", json.dumps(row)))
    assert list(text.tags) == row.get("upos", row.get("tags"))
    assert tag_names([text]) == tuple(sorted(text.tags))


def test_json_lines(tmp_path):
    rows = [
        {"words": ["a", "Bb"], "tags": ["O", "B-X"]},
        {"text": "김철수는 서울에", "spans": [span(5, 7, "LOC"), span(0, 3, "PER")]},
    ]
    words, spans = (read_tagged(write(tmp_path / "a.jsonl", json.dumps(row)))[0] for row in rows)
    assert (words.text, words.words, words.tags) == ("a Bb", ((0, 1), (2, 4)), ("O", "B-X"))
    assert spans.spans == ((0, 3, "PER"), (5, 7, "LOC"))
    assert tag_names([spans]) == ("O", "B-LOC", "B-PER", "I-LOC", "I-PER")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.conll", "", "has no texts;"),
        ("a.jsonl", '{"text": " ", "spans": []}', "has no texts, only empty ones"),
        ("a.conll", "word\n", "line 1: a word and its tag are expected"),
        ("a.conll", "a\tO\nb\tX\tO\n", "line 2, has 3 columns, but those before have 2"),
        ("a.jsonl", "[1]", "line 1, is not a JSON object"),
        ("a.jsonl", '{"words": ["a"], "tags": []}', "must be lists of strings of the same length"),
        ("a.jsonl", '{"text": "ab", "spans": [{"start": 0, "end": 3, "label": "X"}]}', "is not in the text of 2"),
        ("a.jsonl", '{"text": "ab", "spans": [{"start": "0", "end": 1, "label": "X"}]}', "must have integers"),
        (
            "a.jsonl",
            json.dumps({"text": "abc", "spans": [{"start": n, "end": n + 2, "label": "X"} for n in (0, 1)]}),
            "overlap; keep one",
        ),
    ],
)
def test_wrong_files_are_refused(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=message):
        read_tagged(write(tmp_path / name, content))


def test_words_without_labels_must_be_a_list(tmp_path):
    with pytest.raises(ValueError, match="must be lists of strings"):
        read_tagged(write(tmp_path / "a.jsonl", '{"words": 5}'), labelled=False)


def test_first_tokens_carry_the_tags_of_words(tokenizer):
    text = TaggedText("here", "Blackburn \u0301 saw", ((0, 9), (10, 11), (12, 15)), ("B-PER", "O", "O"))
    encoded = encode_tagged(tokenizer, [text], ["O", "B-PER"])
    first = first_tokens(text, encoded.spans[0])
    assert first[1] is None  # a lone accent has no token
    labels = encoded.labels[0]
    assert labels[first[0]] == 1
    assert labels[first[2]] == 0
    assert (labels == -100).sum() == len(labels) - 2
    _, batch = encoded.training_batch(np.array([0]))
    np.testing.assert_array_equal(batch[0, 1 : 1 + len(labels)], labels)
    assert (np.delete(batch[0], np.arange(1, 1 + len(labels))) == -100).all()


def test_tokens_without_characters_begin_no_word():
    text = TaggedText("", "a bc d", ((0, 1), (2, 4), (5, 6)))
    spans = np.array([[0, 0], [0, 1], [2, 2], [2, 3], [3, 4], [5, 5]], np.int32)
    assert first_tokens(text, spans) == [1, 3, None]


def test_every_token_of_a_span_is_labelled(tokenizer):
    text = TaggedText("here", "Mr. Blackburn saw it", spans=((4, 13, "PER"),))
    names = tag_names([text])
    encoded = encode_tagged(tokenizer, [text], names)
    tags = [names[label] for label in encoded.labels[0]]
    inside = [(start < 13 and end > 4) for start, end in encoded.spans[0].tolist()]
    expected = np.where(inside, "I-PER", "O").tolist()
    expected[inside.index(True)] = "B-PER"
    assert tags == expected


def test_an_unknown_tag_is_named(tokenizer):
    text = TaggedText("a.conll, line 7", "a", ((0, 1),), ("B-PRE",))
    with pytest.raises(ValueError, match=r"a\.conll, line 7: the tag 'B-PRE' is not one of 'O', 'B-PER'; did you mean"):
        encode_tagged(tokenizer, [text], ["O", "B-PER"])


def test_windows_of_a_long_text_are_joined(tokenizer):
    words = [f"word{number}" for number in range(60)]
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    places = tuple((int(end) - len(word), int(end)) for word, end in zip(words, ends, strict=True))
    texts = [TaggedText("a", " ".join(words), places, ("O",) * 60), TaggedText("b", "one", ((0, 3),), ("O",))]
    encoded = encode_tagged(tokenizer, texts, ["O", "B-X"], max_length=32, doc_stride=10)
    assert len(encoded.text) > 5
    numbers = [np.arange(start, start + count) for start, count in zip(encoded.start, encoded.count, strict=True)]
    joined = encoded.join(numbers)
    for spans, tokens in zip(encoded.spans, joined, strict=True):
        np.testing.assert_array_equal(tokens, np.arange(len(spans)))
