"""Examples packed into rows give the losses, accuracies and gradients that they give with a row each."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_tf import AlbertEncoder, AlbertForMaskedLM, AlbertForPreTraining
from albert_tf.data import PrepareOptions, prepare, pretraining_dataset
from albert_tf.data.features import features_to_learn
from albert_tf.data.options import ExampleOptions
from albert_tf.data.pretraining.examples import make_examples
from albert_tf.data.pretraining.packing import pack_examples
from albert_tf.data.pretraining.pairs import make_pairs
from tests.data.small_corpus import CORPUS, VOCABULARY, random_documents

from .small import CONFIG

CONFIG = CONFIG.replace(vocab_size=VOCABULARY.vocab_size)


def batch(rows, packed, objective):
    """(inputs, labels) as the reader gives them."""
    parts = {"input": {}, "label": {}}
    for feature in features_to_learn(objective, packed):
        on_disk = feature.name.replace(objective, "sentence_order")
        parts[feature.role][feature.name] = getattr(rows, on_disk)
    return parts["input"], parts["label"]


def make_case(objective):
    """The same examples with a row each, and packed."""
    options = ExampleOptions(max_seq_length=32, pack=True, objective=objective)
    documents = random_documents(6, documents=30, segments=3, longest=8)
    pairs = make_pairs(documents, [0], options)
    examples = make_examples(documents, pairs, options, VOCABULARY)
    packed = pack_examples(examples, pairs.keys, options, VOCABULARY.pad_token_id)
    assert len(packed) < 0.8 * len(examples)
    return tuple(batch(rows, rows is packed, objective) for rows in (examples, packed))


@pytest.fixture(scope="module")
def case():
    return make_case("sentence_order")


@pytest.mark.parametrize("objective", ["sentence_order", "next_sentence"])
def test_losses_accuracies_and_gradients_are_those_of_unpacked_examples(objective):
    plain, packed = make_case(objective)
    keras.utils.set_random_seed(1)
    model = AlbertForPreTraining(CONFIG, objective)
    for variable in model.trainable_variables:  # so that attention and both heads matter
        variable.assign(variable + keras.random.normal(variable.shape, stddev=0.2))
    gradients, terms = [], []
    for inputs, labels in (plain, packed):
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            losses = model.loss_terms(labels, outputs)
            loss = sum(term.mean() for term in losses.values())
        gradients.append([tf.convert_to_tensor(g) for g in tape.gradient(loss, model.trainable_variables)])
        terms.append({name: float(t.mean()) for name, t in {**losses, **model.metric_terms(labels, outputs)}.items()})
    assert set(terms[0]) == {f"{head}_{term}" for head in ("masked_lm", objective) for term in ("loss", "accuracy")}
    assert terms[1] == pytest.approx(terms[0], abs=1e-5)
    for variable, one, other in zip(model.trainable_variables, *gradients, strict=True):
        assert np.max(np.abs(one - other)) < 1e-5, variable.path


@pytest.mark.exhaustive
def test_a_step_on_packed_rows_is_the_step_on_unpacked_ones(case):
    models = []
    for (inputs, labels), way in zip(case, ({"run_eagerly": True}, {"jit_compile": True}), strict=True):
        keras.utils.set_random_seed(2)
        model = AlbertForPreTraining(CONFIG)
        model.compile(keras.optimizers.SGD(0.1), **way)
        model.train_on_batch(inputs, labels)
        models.append(model.get_weights())
    assert max(np.max(np.abs(one - other)) for one, other in zip(*models, strict=True)) < 1e-6


def test_masked_lm_alone_takes_packed_rows(case):
    model = AlbertForMaskedLM(CONFIG)
    model.compile(run_eagerly=True)
    plain, packed = (
        model.test_on_batch(inputs, {name: labels[name] for name in model.label_fields()}, return_dict=True)
        for inputs, labels in case
    )
    assert packed == pytest.approx(plain, abs=1e-5)


def test_an_example_sees_nothing_of_its_neighbours(case):
    inputs = {name: np.array(array) for name, array in case[1][0].items() if name in AlbertEncoder.input_fields}
    encoder = AlbertEncoder(CONFIG)
    before = np.asarray(encoder(inputs)["sequence_output"])
    second = inputs["example_ids"] == 2
    inputs["input_ids"][second] = 7
    after = np.asarray(encoder(inputs)["sequence_output"])
    assert np.array_equal(before[inputs["example_ids"] == 1], after[inputs["example_ids"] == 1])
    assert (before[second] != after[second]).any()


@pytest.mark.exhaustive
def test_a_prepared_folder_has_the_same_losses_packed_or_not(tmp_path):
    lines = [line for line in CORPUS.read_text().splitlines() if line][:150]
    (tmp_path / "text.txt").write_text("\n\n".join("\n".join(lines[start : start + 3]) for start in range(0, 150, 3)))
    model = AlbertForPreTraining(CONFIG.replace(vocab_size=30_000, max_position_embeddings=128))
    model.compile(run_eagerly=True)
    results = []
    for folder, pack in ((tmp_path / "plain", False), (tmp_path / "packed", True)):
        inputs = (tmp_path / "text.txt",)
        options = {"max_seq_length": 128, "dupe_factor": 1, "num_shards": 2, "pack": pack}
        manifest = prepare(PrepareOptions(inputs=inputs, output_dir=folder, **options)).manifest
        rows = pretraining_dataset(folder, 8, shuffle=False, repeat=False, drop_remainder=False)
        files = sorted(folder.glob("*.tfrecord"))  # without a manifest they tell themselves whether they are packed
        assert pretraining_dataset(files, 8, drop_remainder=False).element_spec == rows.element_spec
        results.append(model.evaluate(rows, return_dict=True, verbose=0))
    assert manifest.statistics.examples > 1.3 * sum(shard.records for shard in manifest.shards)
    for name in model.reported_terms():
        assert results[0][name] == pytest.approx(results[1][name], abs=1e-5)
