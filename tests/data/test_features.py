"""Features are declared once: names on both sides are the field's and the reference's, and wrong arrays are refused."""

import numpy as np
import pytest

from albert_tf.data.features import PRETRAINING_FEATURES, check_arrays, with_role
from albert_tf.data.pretraining.examples import PretrainingExamples


def test_names_on_disk_are_the_references():
    disk = {feature.disk_name: feature.disk_dtype for feature in PRETRAINING_FEATURES}
    assert disk == {
        "input_ids": "int64",
        "input_mask": "int64",
        "segment_ids": "int64",
        "token_boundary": "int64",
        "masked_lm_positions": "int64",
        "masked_lm_ids": "int64",
        "masked_lm_weights": "float32",
        "next_sentence_labels": "int64",
    }


def test_examples_have_exactly_the_declared_features():
    assert [feature.name for feature in PRETRAINING_FEATURES] == list(PretrainingExamples.__dataclass_fields__)


def test_every_feature_has_a_role():
    assert len(with_role(PRETRAINING_FEATURES, "input", "label", "extra")) == len(PRETRAINING_FEATURES)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 8), np.int64), "Received: int64"),
        (np.zeros((2, 9), np.int32), r"of shape \(2, 9\)"),
        (None, "must contain `input_ids`"),
    ],
)
def test_wrong_arrays_are_refused(array, message):
    feature = PRETRAINING_FEATURES[0]
    arrays = {} if array is None else {feature.name: array}
    with pytest.raises(ValueError, match=message):
        check_arrays([feature], arrays, {"L": 8, "P": 2})
