"""Proves that predictions are the model's outputs on ids made by hand, and that folders are known by what they hold."""

import numpy as np
import pytest

from albert_tf import AlbertEncoder, AlbertForMaskedLM, AlbertForPreTraining, pipeline
from tests.toy_task import CONFIG, tokenizer


def softmax(logits):
    powers = np.exp(np.asarray(logits, np.float64))
    return powers / powers.sum()


def row(*parts):
    return {"input_ids": np.array([[2, *(i for part in parts for i in part), 3]])}


def encode(text):
    return tokenizer().encode(text)


@pytest.fixture(scope="module")
def loaded(folders):
    return {kind: pipeline(folders[kind]) for kind in ("classifier", "pairs", "pretrained")}


def test_a_text_gets_the_softmax_of_its_logits(loaded):
    prediction = loaded["classifier"](["One Text"])[0]
    expected = softmax(loaded["classifier"].model.model(row(encode("one text")))["logits"][0])
    np.testing.assert_allclose(list(prediction.probabilities.values()), expected, atol=1e-6)
    assert list(prediction.probabilities) == ["gloomy", "mixed", "pleasant"]
    assert prediction.label == list(prediction.probabilities)[expected.argmax()]
    assert prediction.score == pytest.approx(expected.max(), abs=1e-6)


@pytest.mark.parametrize(
    ("text", "prefix", "suffix"),
    [
        ("the [MASK] sat.", "the", [*encode("sat"), encode("x.")[-1]]),
        ("the [MASK].", "the", encode("x.")[1:]),
        ("[MASK]", "", []),
        ("[MASK], yes", "", encode("x, yes")[1:]),
        ("he [MASK]s home", "he", [tokenizer().pieces.index("s"), *encode("home")]),
    ],
)
def test_a_mask_stands_for_one_piece(loaded, text, prefix, suffix):
    model, pieces = loaded["pretrained"].model.model, tokenizer().pieces
    before = encode(prefix)
    inputs = row(before, [tokenizer().mask_token_id], suffix)
    expected = softmax(model(inputs)["masked_lm_logits"][0, 1 + len(before)])
    (prediction,) = loaded["pretrained"](["padding for a longer row [MASK]", text], top=3)[1]
    best = np.argsort(-expected)[:3]
    np.testing.assert_allclose(prediction.probabilities, expected[best], atol=1e-6)
    assert prediction.pieces == tuple(pieces[i] for i in best)


def test_the_order_of_two_segments(loaded):
    first, second = encode("one"), encode("and two")
    inputs = row(first, [3], second)
    inputs["token_type_ids"] = np.array([[0] * (len(first) + 2) + [1] * (len(second) + 1)])
    expected = softmax(loaded["pretrained"].model.model(inputs)["sentence_order_logits"][0])[0]
    assert loaded["pretrained"](["one"], ["and two"])[0] == pytest.approx(expected, abs=1e-6)


def test_a_folder_is_taken_for_what_it_holds(loaded, tmp_path):
    assert [type(loaded[kind].model.model).__name__ for kind in ("classifier", "pretrained")] == [
        "AlbertForSequenceClassification",
        "AlbertForPreTraining",
    ]
    settings = loaded["classifier"].model.settings
    assert (settings.max_length, settings.pair_column) == (48, None)
    assert loaded["pairs"].model.text_task.inputs == ("text", "text_pair")
    assert loaded["pretrained"].model.settings.max_length == 64
    AlbertForMaskedLM(CONFIG).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    masked = pipeline(tmp_path)
    assert isinstance(masked.model.model, AlbertForMaskedLM)
    assert len(masked("a [MASK]")[0].pieces) == 5
    with pytest.raises(ValueError, match=r"A model of masked lm takes text\. Received: 'a', 'b'"):
        masked("a", "b")


@pytest.mark.parametrize(
    ("kind", "texts", "message"),
    [
        ("pairs", (["a"],), r"was trained on pairs of texts, but received single texts"),
        ("pairs", ([], ["a"]), r"equal numbers of rows\. Received: {'text': 0, 'text_pair': 1}"),
    ],
)
def test_mistakes_are_explained(loaded, kind, texts, message):
    with pytest.raises(ValueError, match=message):
        loaded[kind](*texts)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: AlbertEncoder(CONFIG), r"\(AlbertModel\) has no head for a task"),
        (lambda: AlbertForPreTraining(CONFIG.replace(vocab_size=100)), "vocab_size=100, a vocabulary of 30000 pieces"),
        (lambda: AlbertForPreTraining(CONFIG), r"spiece.model"),  # without a vocabulary
    ],
)
def test_folders_that_cannot_predict_are_refused(model, message, tmp_path):
    model().save_pretrained(tmp_path)
    if "spiece" not in message:
        tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=message):
        pipeline(tmp_path)


def test_several_masks_of_a_text(loaded):
    model, words = loaded["pretrained"].model.model, encode("one and two")
    mask = tokenizer().mask_token_id
    expected = softmax(model(row([mask], words[1:2], [mask]))["masked_lm_logits"][0])
    one, several = loaded["pretrained"](["a [MASK]", "[MASK] and [MASK]"], top=2)
    assert (len(one), len(several)) == (1, 2)
    for prediction, position in zip(several, (1, 3), strict=True):
        powers = expected[position] / expected[position].sum()
        np.testing.assert_allclose(prediction.probabilities, np.sort(powers)[:-3:-1], atol=1e-6)


def test_the_second_batch_traces_a_graph_for_batches_of_any_shape(folders, monkeypatch):
    predictor, calls = pipeline(folders["classifier"]), []
    encoder = predictor.model.model.encoder

    def recorded(inputs, *arguments, call=encoder.call, **keywords):
        calls.append(tuple(inputs["input_ids"].shape))
        return call(inputs, *arguments, **keywords)

    monkeypatch.setattr(encoder, "call", recorded)
    texts = ["one", "one and two", "one and two, and three"]
    scores = [predictor(text).score for text in texts]
    assert [shape for shape in calls if None not in shape] == [(1, 3)]
    assert set(calls[1:]) == {(None, None)}
    calls.clear()
    assert [predictor(text).score for text in texts] == pytest.approx(scores, abs=1e-6)
    assert calls == []


def test_targets_and_pseudo_log_likelihood(loaded):
    predictor = loaded["pretrained"]
    (everything,) = predictor("a [MASK]", top=10**6)
    (mask,) = predictor("a [MASK]", targets=["hand", "head"])
    assert set(mask.pieces) == {"▁hand", "▁head"}
    known = dict(zip(everything.pieces, everything.probabilities))
    assert mask.probabilities == pytest.approx([known[piece] for piece in mask.pieces], rel=1e-5)
    with pytest.warns(UserWarning, match="is scored"):
        predictor("a [MASK]", targets=["handheadxyz"])
    texts = ["one and two", "a hand"]
    expected = []
    for ids in map(encode, texts):
        total = 0.0
        for place, piece in enumerate(ids):
            masked = [*ids[:place], tokenizer().mask_token_id, *ids[place + 1 :]]
            total += np.log(softmax(predictor.model.model(row(masked))["masked_lm_logits"][0, place + 1])[piece])
        expected.append(total)
    np.testing.assert_allclose(predictor.pseudo_log_likelihood(texts), expected, rtol=1e-5)
    with pytest.raises(ValueError, match="to be scored"):
        predictor.pseudo_log_likelihood(["many words " * 40])
    with pytest.raises(ValueError, match=r"must have a masked-LM head. Received: one of sequence classification"):
        loaded["classifier"].pseudo_log_likelihood(["a"])
