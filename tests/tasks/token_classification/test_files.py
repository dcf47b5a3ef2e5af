"""Proves that tagged texts are read from each of the forms in which people have them, and others refused."""

import datasets
import pytest

from albert_tf.data.finetuning.example_sources import as_file
from albert_tf.tasks.token_classification.files import read_tagged
from albert_tf.tasks.token_classification.tagged import tag_names
from tests.data.written import write, write_rows
from tests.parameters import diagonal

WORDS, TAGS = ["Anna", "Keller", "in", "Bergen"], ("B-PER", "I-PER", "O", "B-LOC")
NAMES = ("O", "B-PER", "I-PER", "B-LOC")
TEXT, SPANS = "Anna Keller in Bergen", ((0, 11, "PER"), (15, 21, "LOC"))
OBJECTS = [{"start": 15, "end": 21, "label": "LOC"}, {"start": 0, "end": 11, "label": "PER", "token_start": 0}]
OFFSETS = [{"id": 3, "label": label, "start_offset": start, "end_offset": end} for start, end, label in SPANS]
LABEL_STUDIO = [{"start": start, "end": end, "text": TEXT[start:end], "labels": [label]} for start, end, label in SPANS]
RESULTS = [{"type": "labels", "from_name": "label", "to_name": "text", "value": value} for value in LABEL_STUDIO]
ANNOTATED = {"id": 1, "data": {"text": TEXT}, "annotations": [{"id": 7, "result": RESULTS}]}

FORMS = {
    "words and tags": ({"words": WORDS, "tags": list(TAGS)}, TAGS),
    "of the hub, names": ({"id": "0", "tokens": WORDS, "ner_tags": list(TAGS)}, TAGS),
    "of the hub, numbers": ({"tokens": WORDS, "ner_tags": [1, 2, 0, 3]}, TAGS),
    "labels alone": ({"tokens": WORDS, "tags": ["PER", "PER", "O", "LOC"]}, TAGS),
    "IOB1": ({"tokens": WORDS, "tags": ["I-PER", "I-PER", "O", "I-LOC"]}, ("I-PER", "I-PER", "O", "I-LOC")),
    "BIOES": ({"tokens": WORDS, "tags": ["B-PER", "E-PER", "O", "S-LOC"]}, ("B-PER", "E-PER", "O", "S-LOC")),
    "Prodigy": ({"text": TEXT, "tokens": [{"text": "Anna"}], "spans": OBJECTS, "answer": "accept"}, SPANS),
    "doccano": ({"id": 1, "text": TEXT, "label": [[0, 11, "PER"], [15, 21, "LOC"]]}, SPANS),
    "doccano with relations": ({"text": TEXT, "entities": OFFSETS, "relations": [], "Comments": []}, SPANS),
    "spaCy": ([TEXT, {"entities": [[0, 11, "PER"], [15, 21, "LOC"]]}], SPANS),
    "Label Studio's JSON-MIN": ({"id": 1, "text": TEXT, "label": LABEL_STUDIO, "annotation_id": 7}, SPANS),
    "Label Studio": (ANNOTATED, SPANS),
    "spaCy's documents": ({"text": TEXT, "ents": OBJECTS, "tokens": [{"id": 0}]}, SPANS),
}


@pytest.mark.parametrize(("form", "suffix"), diagonal([*FORMS], ["jsonl", "json", "memory"]))
def test_tags_and_spans(tmp_path, form, suffix):
    row, expected = FORMS[form]
    (text,) = read_tagged(write_rows(tmp_path, [row], suffix), names=NAMES)
    assert (text.text, text.tags or text.spans) == (TEXT, expected)


def test_the_classes_of_a_parquet_file_have_names(tmp_path):
    names = datasets.ClassLabel(names=list(NAMES))
    features = datasets.Features({"tokens": datasets.List(datasets.Value("string")), "ner_tags": datasets.List(names)})
    dataset = datasets.Dataset.from_dict({"tokens": [WORDS], "ner_tags": [[1, 2, 0, 3]]}, features)
    dataset.to_parquet(tmp_path / "a.parquet")
    for data in (tmp_path / "a.parquet", as_file(dataset), as_file(dataset.to_iterable_dataset())):
        assert [(text.text, text.tags) for text in read_tagged(data)] == [(TEXT, TAGS)]


@pytest.mark.parametrize(
    "row", [{"tokens": ["the", "dog"], "upos": ["DET", "NOUN"]}, {"words": ["the"], "tags": ["NE"]}]
)
def test_labels_without_o_are_of_words(tmp_path, row):
    (text,) = read_tagged(write_rows(tmp_path, [row]))
    assert list(text.tags) == row.get("upos", row.get("tags"))
    assert tag_names([text]) == tuple(sorted(text.tags))


def test_texts_of_label_studio_without_spans_or_annotations(tmp_path):
    empty = {**ANNOTATED, "data": {"text": "Anna"}, "annotations": [{"id": 7, "result": []}]}
    path = write_rows(tmp_path, [empty, {"text": "Bergen", "annotation_id": 8}, {**empty, "annotations": []}])
    texts = read_tagged(path)
    assert [(text.text, text.spans) for text in texts] == [("Anna", ()), ("Bergen", ())]
    assert texts.form.endswith(f"1 left out that were not accepted, as {path}, line 3)")
    assert [text.text for text in read_tagged(path, labelled=False)] == ["Anna", "Bergen", "Anna"]


def test_prodigy_leaves_out_spans_and_has_tokens(tmp_path):
    rows = [{"text": TEXT, "_input_hash": 1, "tokens": [{"text": "Anna"}]}]
    path = write_rows(tmp_path, [*rows, {"text": TEXT, "_input_hash": 2, "spans": OBJECTS}])
    assert [text.spans for text in read_tagged(path)] == [(), SPANS]
    assert [text.text for text in read_tagged(path, labelled=False)] == [TEXT, TEXT]


def test_what_was_not_accepted_is_counted(tmp_path):
    for fields, form in (({"text": TEXT, "spans": OBJECTS}, "texts and labelled spans"), (ROW, "words and tags")):
        path = write_rows(tmp_path, [{**fields, "answer": answer} for answer in ("yes", "reject", "ignore")])
        left = f"2 left out that were not accepted, as {path}, line 2"
        assert read_tagged(path).form == f"1 texts ({form}; {left})"


# === Lines ===

CONLL = """-DOCSTART- -X- -X- O

Anna NNP B-NP B-PER
Keller NNP I-NP I-PER
in IN O O
Bergen NNP O B-LOC
"""
# The lines of a file, its texts with their tags, and its form.
LINES = {
    "CoNLL-2003": (CONLL, [(TEXT, TAGS)], "a word a line, 4 columns"),
    "tabs": ("Anna\tB-PER\nKeller\tI-PER\nin\tO\nBergen\tB-LOC", [(TEXT, TAGS)], "a word a line, 2 columns"),
    "comments": (
        "# text = Anna\r\n# id = 3\r\nAnna B-PER\r\nKeller I-PER\r\nin O\r\nBergen B-LOC\r\n\r\n",
        *([(TEXT, TAGS)], "a word a line, 2 columns"),
    ),
    "labels alone": ("Anna PER\nKeller PER\nin O\nBergen LOC\n", [(TEXT, TAGS)], "a word a line, 2 columns"),
    "spaces and tabs": (
        "EU NNP B-ORG\nrejects VBZ O\n\nPeter\tNNP\tB-PER\nBlackburn\tNNP\tI-PER\n",
        [("EU rejects", ("B-ORG", "O")), ("Peter Blackburn", ("B-PER", "I-PER"))],
        "a word a line, 3 columns",
    ),
    "comments in front of texts": (
        "a DT O\n\n# id 123 domain=en\nb NN B-X\n# NN O\n",
        *([("a", ("O",)), ("b #", ("B-X", "O"))], "a word a line, 3 columns"),
    ),
    "a word like a comment": ("#Paris\tB-LOC\nis\tO\n", [("#Paris is", ("B-LOC", "O"))], "a word a line, 2 columns"),
    "comments and documents end texts": (
        "# newdoc\nAnna O\n-DOCSTART- O\nsang O\n\n# newdoc\n#tag O\nBob O\n\nNew\u00a0York O\n",
        [("Anna", ("O",)), ("sang", ("O",)), ("#tag Bob", ("O", "O")), ("New\u00a0York", ("O",))],
        "a word a line, 2 columns",
    ),
}


@pytest.mark.parametrize(("form", "encoding"), diagonal([*LINES], ["utf-8", "utf-16"]))
def test_a_word_a_line(tmp_path, form, encoding):
    content, expected, name = LINES[form]
    texts = read_tagged(write(tmp_path / "a.conll", content.encode(encoding)))
    assert [(text.text, text.tags) for text in texts] == expected
    assert all([text.text[slice(*word)] for word in text.words] == text.text.split(" ") for text in texts)
    assert texts.form == f"{len(expected)} texts ({name})"


@pytest.mark.parametrize("content", ["EU NNP\nrejects VBZ\n\nPeter NNP\n", "EU\nrejects\n\nPeter\n"])
def test_columns_to_predict_need_no_tags(tmp_path, content):
    texts = read_tagged(write(tmp_path / "a.conll", content), labelled=False)
    assert [(text.text, text.tags) for text in texts] == [("EU rejects", ("O", "O")), ("Peter", ("O",))]


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


KLUE = (
    "## klue-ner-v1_train_00000\t<김 영:PS>은 <부산:LC>에\n김\tB-PS\n \tI-PS\n영\tI-PS\n은\tO\n"
    " \tO\n부\tB-LC\n산\tI-LC\n에\tO\n\n"
    "## klue-ner-v1_train_00001\t#가\n#\tO\n가\tO\n"
)
KLUE_ROWS = [
    {"tokens": list("김 영은"), "ner_tags": ["B-PS", "I-PS", "I-PS", "O"]},
    {"tokens": list("부산"), "ner_tags": ["B-LC", "I-LC"]},
]


def test_klue_ner(tmp_path):
    path = write(tmp_path / "klue-ner-v1_dev.tsv", KLUE)
    texts = read_tagged(path)
    expected = [("김 영은 부산에", ((0, 3, "PS"), (5, 7, "LC"))), ("#가", ())]
    assert [(text.text, text.spans) for text in texts] == expected
    assert texts.form == "2 texts (a character a line, as in KLUE-NER)"
    assert [text.text for text in read_tagged(path, labelled=False)] == [text for text, _ in expected]
    first_without_space = write(tmp_path / "a.tsv", "## a\t\n마\tB-PS\n## b\t\n가\tO\n \tO\n나\tO\n")
    assert [text.text for text in read_tagged(first_without_space)] == ["마", "가 나"]


@pytest.mark.parametrize("suffix", ["jsonl", "memory"])
def test_klue_ner_of_the_hub(tmp_path, suffix):
    texts = read_tagged(write_rows(tmp_path, KLUE_ROWS, suffix))
    assert [(text.text, text.spans) for text in texts] == [("김 영은", ((0, 3, "PS"),)), ("부산", ((0, 2, "LC"),))]
    assert texts.form == "2 texts (characters and tags)"


# === Errors ===

ROW = {"words": ["a"], "tags": ["O"]}
SPAN = {"start": 0, "end": 2, "label": "X"}
TWO_LABELS = {"text": TEXT, "label": [{**LABEL_STUDIO[0], "labels": ["PER", "LOC"]}]}
# Lines or rows, and what the error says.
WRONG = [
    ("", "has no texts;"),
    ("word\n", "line 1: a word and its tag are expected"),
    ("a\tO\nb\tX\tO\n", "line 2, has 3 columns, but those before have 2"),
    ("a B\nb I\nc O\n", "line 1: the tag 'B' must be written as B-label"),
    ("b O\na B_PER\n", "line 2: the tag 'B_PER' must be written as B-label"),
    ("a PER-B\nb O\n", "'PER-B' must be written as B-label"),
    ("word tag\nAnna PER\nsang O\n", "'tag' is the name of a column"),
    ("It O +\nFrench B-LOC -\n- O -\n", r"no tags in the last column, but '\+', '-', such as flags of spaces; rem"),
    ("It\tO\t_\nFrench\tB-LOC\tSpaceAfter=No\n", "no tags in the last column, but 'SpaceAfter=No', '_'"),
    ("It (PER*) -\nFrench * (12)|(3\n", r"no tags in the last column, but '\(12\)\|\(3', '-'"),
    ("1\tAnna\tB-PER\tO\n2\tsang\tO\tO\n", "numbers its words in the first column; remove it"),
    (CONLLU.replace("ADV\t_", "B\t_").replace("3.1", "4"), "line 7: the tag 'B' must be written as"),
    ([{"text": " ", "spans": []}], "has no texts, only empty ones"),
    ([1], "line 1, is not a JSON object"),
    ([{"words": ["a"], "tags": []}], "must be lists of strings of the same length"),
    ([ROW, {"text": "a", "spans": []}], "line 2, has no column 'words'"),
    ([{"text": "a", "label": 1}], "must be a string and `spans` a list"),
    ([{"tokens": ["a"], "ner_tags": [4]}], r"the tags are numbers; set `labels` to their names in"),
    ([{"tokens": ["a"], "tags": [0.5]}], "must be a name or a number"),
    ([{"tokens": ["a", "b"], "tags": ["PER", "B-LOC"]}], "'PER' has no prefix, unlike 'B-LOC'"),
    ([{"text": "a", "spans": [SPAN]}], "from 0 to 2 is not in the text of 1"),
    ([{"text": "abc", "spans": [{**SPAN, "start": "0"}]}], "must have integers"),
    ([{"text": "abc", "spans": [SPAN, {**SPAN, "start": 1, "end": 3}]}], "overlap; keep one"),
    ([TWO_LABELS], "line 1: a span must have integers `start` and `end` and a `label`"),
]


@pytest.mark.parametrize(("content", "message"), WRONG)
def test_wrong_files_are_refused(tmp_path, content, message):
    file = tmp_path / ("a.conllu" if "sent_id" in content else "a.conll")
    path = write(file, content) if isinstance(content, str) else write_rows(tmp_path, content)
    with pytest.raises(ValueError, match=message):
        read_tagged(path)


def test_numbers_and_words_are_checked(tmp_path):
    with pytest.raises(ValueError, match=r"line 1, tags\[0\]: the tag 4 is not the number of one of 'O'"):
        read_tagged(write_rows(tmp_path, [{"tokens": ["a"], "ner_tags": [4]}]), names=NAMES)
    with pytest.raises(ValueError, match="must be lists of strings"):
        read_tagged(write_rows(tmp_path, [{"words": 5}]), labelled=False)
