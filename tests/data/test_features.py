"""Features are declared once: names on both sides are the field's and the reference's."""

from albert_tf.data.features import PRETRAINING_FEATURES
from albert_tf.data.pretraining.examples import PretrainingExamples


def test_names_on_disk_are_the_references():
    disk = {feature.disk_name: feature.disk_dtype for feature in PRETRAINING_FEATURES}
    integers = ("input_ids", "input_mask", "segment_ids", "token_boundary", "masked_lm_positions", "masked_lm_ids")
    assert disk == {**dict.fromkeys((*integers, "next_sentence_labels"), "int64"), "masked_lm_weights": "float32"}


def test_examples_have_exactly_the_declared_features():
    assert [feature.name for feature in PRETRAINING_FEATURES] == list(PretrainingExamples.__dataclass_fields__)
