"""Proves that rules over variable paths are ordered, total, and free of dead patterns."""

import pytest

from albert_tf.optimizers.rules import ALBERT_EXCLUSIONS, assign_rules, is_excluded

PATHS = ["embeddings/word", "encoder/layer_norm/gamma", "encoder/query/kernel"]


def test_the_first_rule_wins():
    rules = [("gamma", 0.0), ("^encoder", 0.5), (".", 1.0)]
    assert assign_rules(rules, PATHS) == dict(zip(PATHS, [1.0, 0.0, 0.5], strict=True))


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ([("^encoder", 1)], "no rule for 'embeddings/word'"),
        ([("pooler", 1), (".", 2)], "Every rule in `rules` must apply to at least one variable"),
        ([(".", 2), ("encoder", 1)], "Every rule in `rules` must apply to at least one variable"),
        ([("[", 1)], r"regular expressions. Received: '\['"),
    ],
    ids=["no rule", "no path", "after all paths", "broken"],
)
def test_wrong_rules(rules, sentence):
    with pytest.raises(ValueError, match=sentence):
        assign_rules(rules, PATHS)


@pytest.mark.parametrize(
    ("path", "excluded"),
    [
        ("embeddings/layer_norm/gamma", True),
        ("encoder/ffn_layer_norm/beta", True),
        ("bert/encoder/LayerNorm_1/beta", True),
        ("masked_lm_head/output_bias", True),
        ("encoder/query/bias", True),
        ("encoder/query/kernel", False),
        ("embeddings/word_embeddings", False),
        ("sentence_order_head/kernel", False),
        ("encoder/attention_norm/gamma", False),
    ],
)
def test_the_default_list_finds_layer_normalisation_and_biases(path, excluded):
    assert is_excluded(path, ALBERT_EXCLUSIONS) is excluded
