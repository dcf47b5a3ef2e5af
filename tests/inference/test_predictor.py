"""Proves that predictions are the model's outputs on ids made by hand, and that folders are known by what they hold."""

import json

import numpy as np
import pytest

from albert_tf import (
    AlbertEncoder,
    AlbertForMaskedLM,
    AlbertForPreTraining,
)
from albert_tf.export import classify, fill_mask, load_folder, sentence_order
from tests.toy_task import CONFIG, tokenizer, write_classifier


def softmax(logits):
    powers = np.exp(np.asarray(logits, np.float64))
    return powers / powers.sum()


def row(*parts):
    return {"input_ids": np.array([[2, *(i for part in parts for i in part), 3]])}


def encode(text):
    return tokenizer().encode(text)


@pytest.fixture(scope="module")
def loaded(folders):
    return {kind: load_folder(folders[kind]) for kind in ("classifier", "pairs", "pretrained")}


def test_a_text_gets_the_softmax_of_its_logits(loaded):
    prediction = classify(loaded["classifier"], ["One Text"])[0]
    expected = softmax(loaded["classifier"].model(row(encode("one text")))["logits"][0])
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
    model, pieces = loaded["pretrained"].model, tokenizer().pieces
    before = encode(prefix)
    inputs = row(before, [tokenizer().mask_token_id], suffix)
    expected = softmax(model(inputs)["masked_lm_logits"][0, 1 + len(before)])
    (prediction,) = fill_mask(loaded["pretrained"], ["padding for a longer row [MASK]", text], top=3)[1]
    best = np.argsort(-expected)[:3]
    np.testing.assert_allclose(prediction.probabilities, expected[best], atol=1e-6)
    assert prediction.pieces == tuple(pieces[i] for i in best)


def test_the_order_of_two_segments(loaded):
    first, second = encode("one"), encode("and two")
    inputs = row(first, [3], second)
    inputs["token_type_ids"] = np.array([[0] * (len(first) + 2) + [1] * (len(second) + 1)])
    expected = softmax(loaded["pretrained"].model(inputs)["sentence_order_logits"][0])[0]
    assert sentence_order(loaded["pretrained"], ["one"], ["and two"])[0] == pytest.approx(expected, abs=1e-6)


def test_a_folder_is_taken_for_what_it_holds(loaded, tmp_path):
    assert [type(loaded[kind].model).__name__ for kind in ("classifier", "pretrained")] == [
        "AlbertForSequenceClassification",
        "AlbertForPreTraining",
    ]
    assert (loaded["classifier"].settings.max_length, loaded["classifier"].settings.pair_column) == (48, None)
    assert (loaded["pairs"].text_task.inputs, loaded["pretrained"].settings.max_length) == (("text", "text_pair"), 64)
    AlbertForMaskedLM(CONFIG).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    masked = load_folder(tmp_path)
    assert isinstance(masked.model, AlbertForMaskedLM)
    assert len(fill_mask(masked, ["a [MASK]"])[0][0].pieces) == 5
    with pytest.raises(ValueError, match=r"sentence-order head. Received: a model of masked lm"):
        sentence_order(masked, ["a"], ["b"])


def test_a_recipe_of_another_kind_beside_the_model_is_no_matter(tmp_path):
    folder = write_classifier(tmp_path)
    (folder / "recipe.json").write_text(json.dumps({"model": {}, "training": {"num_train_steps": 3}}))
    assert load_folder(folder).settings.max_length == 64


def test_mistakes_are_explained(loaded, tmp_path):
    with pytest.raises(ValueError, match=r"must contain \[MASK\].* Received: 'no mask'"):
        fill_mask(loaded["pretrained"], ["a [MASK]", "no mask"])
    with pytest.raises(ValueError, match=r"within its first 62 pieces"):
        fill_mask(loaded["pretrained"], ["many words " * 40 + "[MASK]"])
    with pytest.raises(ValueError, match=r"must have a masked-LM head. Received: a model of sequence classification"):
        fill_mask(loaded["classifier"], ["[MASK]"])
    with pytest.raises(ValueError, match=r"must be a classifier. Received: a model of pretraining"):
        classify(loaded["pretrained"], ["a"])
    with pytest.raises(ValueError, match=r"was trained on pairs of texts, but received single texts"):
        classify(loaded["pairs"], ["a"])
    with pytest.raises(ValueError, match=r"was trained on single texts, but received pairs"):
        classify(loaded["classifier"], ["a"], ["b"])


def test_folders_that_cannot_predict_are_refused(tmp_path):
    AlbertEncoder(CONFIG).save_pretrained(tmp_path / "bare")
    tokenizer().save_pretrained(tmp_path / "bare")
    with pytest.raises(ValueError, match=r"bare \(AlbertModel\) has no head for a task"):
        load_folder(tmp_path / "bare")
    AlbertForPreTraining(CONFIG.replace(vocab_size=100)).save_pretrained(tmp_path / "small")
    tokenizer().save_pretrained(tmp_path / "small")
    with pytest.raises(ValueError, match="vocab_size=100, a vocabulary of 30000 pieces"):
        load_folder(tmp_path / "small")
    AlbertForPreTraining(CONFIG).save_pretrained(tmp_path / "no_vocabulary")
    with pytest.raises(ValueError, match=r"spiece.model"):
        load_folder(tmp_path / "no_vocabulary")


def test_several_masks_of_a_text(loaded):
    model, words = loaded["pretrained"].model, encode("one and two")
    mask = tokenizer().mask_token_id
    expected = softmax(model(row([mask], words[1:2], [mask]))["masked_lm_logits"][0])
    one, several = fill_mask(loaded["pretrained"], ["a [MASK]", "[MASK] and [MASK]"], top=2)
    assert (len(one), len(several)) == (1, 2)
    for prediction, position in zip(several, (1, 3), strict=True):
        powers = expected[position] / expected[position].sum()
        np.testing.assert_allclose(prediction.probabilities, np.sort(powers)[:-3:-1], atol=1e-6)


def test_no_text_has_no_prediction(loaded):
    assert loaded["classifier"].classify([]) == fill_mask(loaded["pretrained"], []) == []
    with pytest.raises(ValueError, match=r"one of text and text_pair for each row\. Received: 0 of text and 1 of"):
        loaded["pairs"].classify([], ["a"])


def test_many_texts_are_predicted_in_batches_of_similar_length(loaded, monkeypatch):
    texts = ["many words " * (number % 7) + "[MASK]." for number in range(70)]
    shapes = []
    for folder in (loaded["classifier"], loaded["pretrained"]):

        def recorded(inputs, compute=folder.network.compute):
            shapes.append(tuple(inputs["input_ids"].shape))
            return compute(inputs)

        monkeypatch.setattr(folder.network, "compute", recorded)
    classes, masks = classify(loaded["classifier"], texts), fill_mask(loaded["pretrained"], texts, top=2)
    order = sentence_order(loaded["pretrained"], texts, texts[::-1])
    assert [rows for rows, _ in shapes] == [32, 32, 6] * 3
    for lengths in ([length for _, length in shapes[start : start + 3]] for start in (0, 3, 6)):
        assert lengths == sorted(lengths, reverse=True)
    assert shapes[0][1] > shapes[2][1]
    for number in (0, 6, 33, 69):
        one = texts[number : number + 1]
        assert classes[number].score == pytest.approx(classify(loaded["classifier"], one)[0].score, abs=1e-5)
        (alone,), (together,) = fill_mask(loaded["pretrained"], one, top=2)[0], masks[number]
        assert together.pieces == alone.pieces
        assert together.probabilities == pytest.approx(alone.probabilities, abs=1e-5)
        pair = texts[69 - number : 70 - number]
        assert order[number] == pytest.approx(sentence_order(loaded["pretrained"], one, pair)[0], abs=1e-5)


def test_the_second_batch_traces_a_graph_for_batches_of_any_shape(folders, monkeypatch):
    loaded, calls = load_folder(folders["classifier"]), []
    encoder = loaded.model.encoder

    def recorded(inputs, *arguments, call=encoder.call, **keywords):
        calls.append(tuple(inputs["input_ids"].shape))
        return call(inputs, *arguments, **keywords)

    monkeypatch.setattr(encoder, "call", recorded)
    texts = ["one", "one and two", "one and two, and three"]
    scores = [classify(loaded, [text])[0].score for text in texts]
    assert [shape for shape in calls if None not in shape] == [(1, 3)]
    assert set(calls[1:]) == {(None, None)}
    calls.clear()
    assert [classify(loaded, [text])[0].score for text in texts] == pytest.approx(scores, abs=1e-6)
    assert calls == []


def test_targets_and_pseudo_log_likelihood(loaded):
    model = loaded["pretrained"]
    (everything,) = model.fill_mask(["a [MASK]"], top=10**6)[0]
    (mask,) = model.fill_mask(["a [MASK]"], targets=["hand", "head"])[0]
    assert set(mask.pieces) == {"▁hand", "▁head"}
    known = dict(zip(everything.pieces, everything.probabilities))
    assert mask.probabilities == pytest.approx([known[piece] for piece in mask.pieces], rel=1e-5)
    with pytest.warns(UserWarning, match="is scored"):
        model.fill_mask(["a [MASK]"], targets=["handheadxyz"])
    texts = ["one and two", "a hand"]
    expected = []
    for ids in map(encode, texts):
        total = 0.0
        for place, piece in enumerate(ids):
            masked = [*ids[:place], tokenizer().mask_token_id, *ids[place + 1 :]]
            total += np.log(softmax(model.model(row(masked))["masked_lm_logits"][0, place + 1])[piece])
        expected.append(total)
    np.testing.assert_allclose(model.pseudo_log_likelihood(texts), expected, rtol=1e-5)
    with pytest.raises(ValueError, match="to be scored"):
        model.pseudo_log_likelihood(["many words " * 40])
