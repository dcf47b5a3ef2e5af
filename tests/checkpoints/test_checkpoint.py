"""Proves that loading is total or raises, before any variable is touched, and that writing leaves no half file."""

import numpy as np
import pytest

from albert_tf import AlbertConfig, AlbertEncoder, AlbertForPreTraining, AlbertForSequenceClassification, checkpoints
from albert_tf.checkpoints.checkpoint import assign
from tests.checkpoints.comparison import assert_same, change_tensors
from tests.disk import change_json, contents, full_disk

CONFIG = AlbertConfig(
    vocab_size=30, embedding_size=8, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24
)
POOLER = "albert.pooler.weight"


@pytest.fixture
def folder(tmp_path):
    AlbertForPreTraining(CONFIG).save_pretrained(tmp_path)
    return tmp_path


# === Total or an error ===


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (lambda tensors: tensors.pop(POOLER), "does not fit the model: missing encoder/pooler/kernel; its config"),
        (lambda tensors: tensors.update({"albert.extra": np.zeros(3, "f4")}), r"does not have: albert\.extra; check"),
        (lambda tensors: tensors.update({POOLER: np.zeros((16, 15), "f4")}), r"kernel \(15, 16\) for \(16, 16\)\)"),
    ],
    ids=["missing", "too many", "another shape"],
)
def test_tensors_that_do_not_fit(edit, complaint, folder):
    change_tensors(folder, edit)
    for options in ({}, {"new_head": True}):  # half a pooler is damage, not a pooler that is new
        with pytest.raises(ValueError, match=complaint):
            AlbertForPreTraining.from_pretrained(folder, **options)


@pytest.mark.parametrize("shape", [(0, 2**60), (2**40, 0), (0,)])
def test_a_tensor_without_values_whatever_its_other_sizes(shape, tmp_path):
    AlbertForSequenceClassification(CONFIG, num_labels=2).save_pretrained(tmp_path)
    change_tensors(tmp_path, lambda tensors: tensors.update({"classifier.bias": np.zeros(shape, "float32")}))
    complaint = r"`classifier.bias` in .*model\.safetensors has no values, its shape is .*; sa"
    with pytest.raises(ValueError, match=complaint):
        checkpoints.read(tmp_path)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"hidden_size": 18}, r"other shapes \(.* and \d+ more\)"),
        ({"vocab_size": 2**30}, r"has 6,960 values, .* encoder of [\d,]+ parameters; use the config"),
        ({"vocab_size": 31}, r"encoder/embeddings/word_embeddings \(30, 8\) for \(31, 8\)"),
        ({"num_hidden_groups": 2}, r"missing encoder/attention_1_0/query/kernel, .* and \d+ more"),
        ({"inner_group_num": 2}, r"missing encoder/attention_0_1/query/kernel, "),
        ({"embedding_size": 16}, r"word_embeddings \(30, 8\) for \(30, 16\)"),
    ],
)
def test_a_config_of_another_size(changes, complaint, folder):
    change_json(folder / "config.json", **changes)
    with pytest.raises(ValueError, match=complaint):
        AlbertForPreTraining.from_pretrained(folder)


def test_a_file_with_more_groups_than_its_config(tmp_path):
    AlbertForPreTraining(CONFIG.replace(num_hidden_groups=2)).save_pretrained(tmp_path)
    change_json(tmp_path / "config.json", num_hidden_groups=1)
    with pytest.raises(ValueError, match=r"a model of its config does not have: .*layer_groups\.1\..* more; check"):
        AlbertForPreTraining.from_pretrained(tmp_path)


def test_variables_are_untouched_where_loading_fails(folder):
    checkpoint = checkpoints.read(folder)
    model = AlbertForPreTraining(CONFIG.replace(vocab_size=31))
    before = model.get_weights()
    with pytest.raises(ValueError, match="does not fit the model"):
        assign(checkpoint, model.variables_by_path())
    for found, expected in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(found, expected)


# === Heads ===


def encoder_of(arrays):
    return {path: array for path, array in arrays.items() if path.startswith("encoder/")}


def test_a_new_head_only_where_it_is_asked_for(folder):
    with pytest.raises(ValueError, match=r"missing classifier/kernel, classifier/bias; it has no classifier"):
        AlbertForSequenceClassification.from_pretrained(folder, num_labels=3)
    model = AlbertForSequenceClassification.from_pretrained(folder, num_labels=3, new_head=True)
    assert_same(encoder_of(model.arrays_by_path()), encoder_of(checkpoints.read(folder).arrays))
    assert np.std(model.classifier.kernel) > 0


def test_heads_of_other_tasks_are_set_aside(folder):
    expected = checkpoints.read(folder).arrays
    encoder = AlbertEncoder.from_pretrained(folder)
    assert {path.split("/")[0] for path in expected} == {"encoder", "masked_lm", "sentence_order"}
    assert_same(encoder.arrays_by_path(), encoder_of(expected))
    assert AlbertEncoder.from_pretrained(folder, add_pooling_layer=False).pooler is None


@pytest.mark.parametrize("arguments", [{"labels": list("abcde")}, {"num_labels": 5}])
@pytest.mark.parametrize("problem", ["classification", "regression"])
def test_a_new_head_replaces_one_of_another_number_of_labels(problem, arguments, tmp_path):
    old = AlbertForSequenceClassification(CONFIG, num_labels=2 if problem == "classification" else 1, problem=problem)
    old.save_pretrained(tmp_path)
    sizes = rf"kernel \(16, {old.num_labels}\) for \(16, 5\), .*; it has {old.num_labels} labels and the model has 5"
    with pytest.raises(ValueError, match=f"{sizes}: pass new_head=True to initialize this part anew"):
        AlbertForSequenceClassification.from_pretrained(tmp_path, **arguments)
    model = AlbertForSequenceClassification.from_pretrained(tmp_path, new_head=True, **arguments)
    assert (model.num_labels, model.problem) == (5, "classification")
    assert_same(encoder_of(model.arrays_by_path()), encoder_of(old.arrays_by_path()))
    assert np.std(model.classifier.kernel) > 0
    change_json(tmp_path / "config.json", vocab_size=31)
    with pytest.raises(ValueError, match=r"word_embeddings \(30, 8\) for \(31, 8\)\); its config probably"):
        AlbertForSequenceClassification.from_pretrained(tmp_path, new_head=True, **arguments)


def test_a_head_of_the_same_number_of_labels_is_kept(tmp_path):
    old = AlbertForSequenceClassification(CONFIG, num_labels=2)
    old.save_pretrained(tmp_path)
    model = AlbertForSequenceClassification.from_pretrained(tmp_path, labels=["no", "yes"], new_head=True)
    assert model.labels == ("no", "yes")
    np.testing.assert_array_equal(model.classifier.kernel, old.classifier.kernel)


# === Writing ===


def test_a_full_disk_leaves_what_was_there(tmp_path):
    before = {}
    for config in (CONFIG, CONFIG.replace(hidden_size=32)):
        with pytest.raises(OSError, match="File too large"), full_disk(2000):
            AlbertForPreTraining(config).save_pretrained(tmp_path / "model")
        assert contents(tmp_path / "model") == before
        AlbertForPreTraining(CONFIG).save_pretrained(tmp_path / "model")
        before = contents(tmp_path / "model")
    assert set(before) == {"config.json", "model.safetensors"}


def test_saving_twice_replaces(folder):
    model = AlbertForPreTraining(CONFIG.replace(hidden_size=32))
    model.save_pretrained(folder)
    assert_same(AlbertForPreTraining.from_pretrained(folder).arrays_by_path(), model.arrays_by_path())
    assert len(list(folder.iterdir())) == 2
