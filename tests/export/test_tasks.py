"""Proves that exports of every task answer as the Keras model does, whatever else is in the batch or in the process."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertTokenizer, pipeline
from albert_tf.export.windows import bytes_of, cut, parts_of
from albert_tf.inference.folder import load_folder
from albert_tf.inference.onnx_network import p_mask_of
from albert_tf.serving.engine import load_engine
from albert_tf.trainer.evaluation import predict_folder
from tests.conftest import OTHER_TASKS
from tests.parameters import first_of

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
# No two windows are alike, so that no two answers have equal scores.
LONG = "  Jürgen Müller of 서울 🙂 said:\u3000yes. " + " ".join(map(str, range(99, 200)))
SHORT = "He lives in New York (U.S.A.)"
TEXTS = {
    "questions": {"question": ["Who is he?", "Where does he live? " * 9, "What?"], "context": [LONG, SHORT, "x"]},
    "tags": {"text": [LONG, SHORT, "", "word " * 90]},
    "choices": {"context": [LONG, SHORT], "choices": [["It is 150.", "a_b"], ["New York", "no " * 200]]},
    "embedding": {"text": [LONG, SHORT, ""]},
    "multi_label": {"text": [LONG, SHORT, ""]},
}
TEXTS["questions_beam"] = TEXTS["questions"]


@pytest.fixture(scope="module")
def signatures(exports):
    return {kind: tf.saved_model.load(str(exports[kind].folder)).signatures for kind in ("questions", "tags")}


def outputs_of(signatures, texts, name="serving_default"):
    outputs = signatures[name](**{key: tf.constant(value) for key, value in texts.items()})
    return {key: value.numpy() for key, value in outputs.items()}


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", [*OTHER_TASKS, "multi_label"])
def test_tokenize_and_tokens(exports, folders, kind):
    restored = tf.saved_model.load(str(exports[kind].folder))
    ids = outputs_of(restored.signatures, TEXTS[kind], "tokenize")
    outputs = outputs_of(restored.signatures, ids, "tokens")
    inputs = {**ids, "p_mask": p_mask_of(ids)} if kind == "questions_beam" else ids
    expected = load_folder(folders[kind]).model(inputs, training=False)
    for name in set(outputs) & set(expected):
        np.testing.assert_allclose(outputs[name], expected[name], atol=1e-5, err_msg=name)
    assert set(outputs) & set(expected)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "empty"), [("questions", " \u3000\n"), ("questions_beam", "")])
def test_an_empty_passage_or_question_is_refused_as_the_model_does(exports, folders, kind, empty):
    texts = ["Who?", "Where?"], [SHORT, empty]
    engine, (questions, contexts) = load_engine(exports[kind].folder), (np.array(column, object) for column in texts)
    for name, answer in (
        ("a question", lambda: engine.run("serving_default", {"question": questions, "context": contexts})),
        ("question 'Where\\?'", lambda: pipeline(folders[kind])(*texts)),
    ):
        with pytest.raises(ValueError, match=rf"^The passage of {name} has no tokens; delete it\.$"):
            answer()
    with pytest.raises(ValueError, match=r"^The question about a passage has no tokens; write one, or delete it\.$"):
        engine.run("serving_default", {"question": contexts, "context": np.array([SHORT, SHORT], object)})
    with pytest.raises(
        ValueError, match=rf"^The question about '{SHORT[:9]}.*' has no tokens; write one, or delete it\.$"
    ):
        pipeline(folders[kind])(texts[1], [SHORT, SHORT])


@pytest.mark.parametrize("kind", first_of(["classifier", "choices"]))
def test_tokens_outside_their_range_are_refused(exports, kind):
    restored = load_engine(exports[kind].folder)
    shape = (2, 2, 4) if kind == "choices" else (2, 4)
    tokens = {name: np.ones(shape, np.int32) for name in ("input_ids", "attention_mask", "token_type_ids")}
    restored.run("tokens", tokens)
    for name, highest in (("input_ids", 29_999), ("attention_mask", 1), ("token_type_ids", 1)):
        for wrong in (-1, highest + 1):
            changed = tokens[name].copy()
            changed.flat[5] = wrong
            with pytest.raises(ValueError, match=rf"^`{name}` must be integers from 0 to {highest}\.$"):
                restored.run("tokens", {**tokens, name: changed})
    longest = json.loads((exports[kind].folder / "model.json").read_text())["config"]["max_position_embeddings"]
    too_long = {name: np.ones((*shape[:-1], longest + 1), np.int32) for name in tokens}
    with pytest.raises(ValueError, match=rf"^`input_ids` must have at most {longest} columns\.$"):
        restored.run("tokens", too_long)
    with pytest.raises(ValueError, match=r"^`token_type_ids` must have the shape of `input_ids`\.$"):
        restored.run("tokens", {**tokens, "token_type_ids": np.zeros((*shape[:-1], 3), np.int32)})


@pytest.mark.exhaustive
def test_an_answer_is_in_its_passage(signatures):
    outputs = outputs_of(signatures["questions"], TEXTS["questions"])
    for text, start, end, context in zip(
        outputs["answer"], outputs["start"], outputs["end"], TEXTS["questions"]["context"], strict=True
    ):
        assert text
        assert context[start:end] == text.decode()


@pytest.mark.exhaustive
def test_an_entity_is_in_its_text(signatures):
    outputs = outputs_of(signatures["tags"], TEXTS["tags"])
    for row, text in enumerate(TEXTS["tags"]["text"]):
        for part, start, end in zip(*(outputs[f"entity_{name}"][row] for name in ("text", "start", "end"))):
            if start >= 0:
                assert text[start:end] == part.decode()
                assert part.decode().strip() == part.decode() != ""
    assert outputs["entity_start"][0, 0] >= 0
    assert (outputs["entity_label"][2] == b"").all()


def test_parts_of_texts_in_bytes_and_in_characters():
    texts = [LONG.encode(), b"", b"\xff a\x80\x80b \xed\xa0\x80 \xf0\x9f", "\u3000 서울 🙂\xa0".encode()]
    chance = np.random.default_rng(0)
    samples = np.repeat(np.arange(len(texts), dtype=np.int32), 100)
    starts, ends = np.sort([chance.integers(0, len(texts[sample]) + 1, 2) for sample in samples]).astype(np.int32).T
    split = bytes_of(tf.constant(texts))
    parts = parts_of(split, samples, starts, ends).numpy().tolist()
    assert parts == [texts[sample][start:end] for sample, start, end in zip(samples, starts, ends)]
    for sample, start, part, stripped, *edges in zip(samples, starts, parts, *cut(split, samples, starts, ends)):
        left = part.decode("utf-8", "surrogateescape").lstrip()
        assert stripped.numpy() == left.rstrip().encode("utf-8", "surrogateescape")
        first = start + len(part) - len(left.encode("utf-8", "surrogateescape"))
        last = first + len(stripped.numpy())
        assert edges == [sum(byte & 0xC0 != 0x80 for byte in texts[sample][:edge]) for edge in (first, last)]


LONG_TEXT = """
import pathlib, resource, sys
import numpy as np
from albert_tf.serving.saved_model_engine import load

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

engine = load(pathlib.Path(sys.argv[1]))
text = " ".join(map(str, range(15_000))).encode()
engine.run("serving_default", {"text": np.array([text[:100]], object)})
before = peak()
found = engine.run("serving_default", {"text": np.array([text], object)})
print(len(text), found["entity_end"].max(), peak() - before)
"""


@pytest.mark.exhaustive
def test_memory_is_in_proportion_to_a_text(exports, run_python):
    length, last, megabytes = run_python("-c", LONG_TEXT, exports["tags"].folder).stdout.split()
    assert int(length) == int(last) > 70_000
    assert float(megabytes) < 500  # a copy of the text for each token would take 2 GB


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["questions", "questions_beam"])
def test_answers_are_those_of_fine_tuning(folders, tmp_path, kind):
    questions, contexts = TEXTS[kind].values()
    paragraphs = [
        {"context": context, "qas": [{"id": str(number), "question": question, "answers": []}]}
        for number, (question, context) in enumerate(zip(questions, contexts))
    ]
    (tmp_path / "a.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    predict_folder(folders[kind], tmp_path / "a.json", tmp_path / "b.json")
    answers = json.loads((tmp_path / "b.json").read_text())
    found = pipeline(folders[kind])(questions, contexts)
    assert [answer.text for answer in found] == list(answers.values())


def test_questions_without_an_answer(folders):
    loaded = load_folder(folders["questions"])
    odds = loaded.predict(*TEXTS["questions"].values())[1].null_odds
    refused = loaded.changed(no_answer_threshold=odds - 0.01)
    answer = refused.predict(*(texts[1:2] for texts in TEXTS["questions"].values()))[0]
    assert (answer.text, answer.start, answer.end) == ("", -1, -1)


def test_words_decide_where_words_were_trained(folders):
    loaded = load_folder(folders["tags"])
    by_words, by_tokens = (
        loaded.changed(tag_words=tags_words).predict(["Jürgenstein, (Müllerhaus)."])[0] for tags_words in (True, False)
    )
    ends = {0, 11, 12, 13, 14, 24, 25, 26}
    assert {entity.start for entity in by_words} | {entity.end for entity in by_words} <= ends
    assert not {entity.start for entity in by_tokens} | {entity.end for entity in by_tokens} <= ends


def test_mistakes_are_explained(folders):
    with pytest.raises(ValueError, match=r"one of question and context for each row\. Received: 2 of question and"):
        load_folder(folders["questions"]).predict(["a", "b"], ["c"])
    with pytest.raises(ValueError, match=r"one of context and choices for each row\. Received: 1 of context and 2"):
        load_folder(folders["choices"]).predict(["a"], [["b"], ["c", "d"]])
    with pytest.raises(ValueError, match=r"must be of the same length\. Received: rows of 1, 2 choices"):
        load_folder(folders["choices"]).predict(["a", "b"], [["b"], ["c", "d"]])


class _Tokenizes(tf.Module):
    def __init__(self, tokenizer):
        super().__init__()
        self.layer = tokenizer.as_layer(32, return_offsets=True)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, text):
        return self.layer(text)


@pytest.mark.exhaustive
def test_models_of_different_vocabularies_in_one_process(tmp_path):
    tokenizers = {
        "english": AlbertTokenizer.english(),
        "other": AlbertTokenizer.from_pretrained(GOLDEN / "keras_hub_tokenizer" / "spm.model"),
    }
    for name, tokenizer in tokenizers.items():
        tf.saved_model.save(_Tokenizes(tokenizer), str(tmp_path / name))
    loaded = {name: tf.saved_model.load(str(tmp_path / name)) for name in tokenizers}
    for name, tokenizer in tokenizers.items():
        expected = tokenizer(["the quick brown fox"], max_length=32, return_offsets=True)
        given = loaded[name](tf.constant(["the quick brown fox"]))
        for key in ("input_ids", "offsets"):
            np.testing.assert_array_equal(given[key], expected[key], err_msg=f"{name} {key}")
