"""Proves the parameter, arithmetic and memory formulas against counts that were made another way."""

import dataclasses
import math

import pytest
import tensorflow as tf

from albert_tf.config import PRESETS, AlbertConfig
from albert_tf.costs import compare_costs, encoder_flops, estimate_costs, head_flops

SMALL = AlbertConfig(
    vocab_size=50, embedding_size=6, hidden_size=8, num_hidden_layers=3, num_attention_heads=2, intermediate_size=12
)


def trace(config, length, predictions, with_gradient):
    """A graph with the matrix products of pretraining on one sequence, and their gradients if wanted."""
    hidden, embedding, inner = config.hidden_size, config.embedding_size, config.intermediate_size
    heads, head = config.num_attention_heads, config.head_size
    shapes = {"table": (length, embedding), "project": (embedding, hidden)}
    shapes |= {"up": (hidden, inner), "down": (inner, hidden)}
    shapes |= dict.fromkeys(("query", "key", "value", "output", "pool"), (hidden, hidden))
    shapes |= {"transform": (hidden, embedding), "words": (config.vocab_size, embedding), "order": (hidden, 2)}
    weights = {name: tf.Variable(tf.random.stateless_normal(shape, (1, 2))) for name, shape in shapes.items()}

    def split(x):
        return tf.transpose(tf.reshape(x, (length, heads, head)), (1, 0, 2))  # [N, L, H]

    def forward():
        x = tf.convert_to_tensor(weights["table"])  # [L, E]
        x = x @ weights["project"] if config.has_projection else x  # [L, D]
        for _ in range(config.num_hidden_layers * config.inner_group_num):
            query, key, value = (split(x @ weights[name]) for name in ("query", "key", "value"))
            probabilities = tf.nn.softmax(tf.matmul(query, key, transpose_b=True))  # [N, L, L]
            context = tf.reshape(tf.transpose(tf.matmul(probabilities, value), (1, 0, 2)), (length, hidden))
            x = tf.tanh(context @ weights["output"] + x)
            x = tf.tanh(tf.tanh(x @ weights["up"]) @ weights["down"] + x)
        pooled = tf.tanh(x[:1] @ weights["pool"])  # [1, D]
        transformed = tf.tanh(x[:predictions] @ weights["transform"])  # [P, E]
        logits = tf.matmul(transformed, weights["words"], transpose_b=True)  # [P, V]
        return tf.reduce_sum(logits**2) + tf.reduce_sum((pooled @ weights["order"]) ** 2)

    @tf.function(autograph=False)
    def step():
        if not with_gradient:
            return forward()
        with tf.GradientTape() as tape:
            loss = forward()
        return tape.gradient(loss, list(weights.values()))

    return step.get_concrete_function().graph


def count_products(graph):
    """Floating point operations of every matrix product in a graph, from the shapes that meet there."""
    total = 0
    for operation in graph.get_operations():
        if operation.type in ("MatMul", "BatchMatMulV2"):
            transposed = operation.get_attr("transpose_a" if operation.type == "MatMul" else "adj_x")
            left = operation.inputs[0].shape.as_list()
            total += 2 * math.prod(operation.outputs[0].shape.as_list()) * left[-2 if transposed else -1]
        assert "Conv" not in operation.type
        assert "Einsum" not in operation.type
    return total


@pytest.mark.parametrize("changes", [{}, {"embedding_size": 8}, {"num_attention_heads": 4, "inner_group_num": 2}])
@pytest.mark.parametrize(("length", "predictions"), [(10, 3), (16, 5)])
def test_flops_are_those_of_a_traced_graph(changes, length, predictions):
    config = SMALL.replace(**changes)
    forward = encoder_flops(config, length) + head_flops(config, predictions)
    assert count_products(trace(config, length, predictions, with_gradient=False)) == forward
    costs = estimate_costs(config, length, predictions)
    assert costs.forward_flops_per_token * length == pytest.approx(encoder_flops(config, length))
    training = count_products(trace(config, length, predictions, with_gradient=True))
    assert costs.training_flops_per_token * length == pytest.approx(training)


@pytest.mark.parametrize("name", PRESETS)
def test_parts_make_the_total(name):
    config = AlbertConfig.from_preset(name)
    for changes in ({}, {"share": "attention"}, {"share": "none", "embedding_size": config.hidden_size}):
        changed = config.replace(**changes)
        parameters = estimate_costs(changed).parameters
        parts = dataclasses.asdict(parameters)
        heads = parts["masked_lm_head"] + parts["sentence_order_head"]
        assert sum(parts.values()) == parameters.pretraining == changed.num_parameters("pretraining")
        assert sum(parts.values()) - heads == parameters.encoder == changed.num_parameters()


def test_without_sharing_and_factorisation_it_is_bert():
    base = compare_costs(AlbertConfig.from_preset("base_v2"))
    tables = (30000 + 512 + 2) * 768 + 2 * 768
    layer = 4 * (768 * 768 + 768) + (768 * 3072 + 3072) + (3072 * 768 + 768) + 2 * 2 * 768
    assert base.bert.parameters.encoder == tables + 12 * layer + 768 * 768 + 768 == 109_081_344
    assert base.unshared.parameters.encoder == base.albert.parameters.encoder + 11 * layer
    assert base.unfactorised.parameters.projection == 0
    assert base.unfactorised.parameters.encoder == tables + layer + 768 * 768 + 768


def test_sharing_saves_no_arithmetic_and_no_activations():
    both = compare_costs(AlbertConfig.from_preset("large_v2"), sequence_length=128)
    assert both.unshared.forward_flops_per_token == both.albert.forward_flops_per_token
    assert both.unshared.activation_bytes_per_sequence == both.albert.activation_bytes_per_sequence
    of_groups = compare_costs(SMALL.replace(num_hidden_groups=3), sequence_length=16)
    assert of_groups.unshared.parameters == of_groups.albert.parameters


def test_activations_listed_one_by_one():
    length, hidden, inner, heads, embedding, predictions = 16, 8, 12, 2, 6, 5
    block = {
        **dict.fromkeys(("input", "query", "key", "value", "context"), length * hidden),
        **dict.fromkeys(("attention_sum", "ffn_input", "ffn_sum"), length * hidden),
        **{"before_gelu": length * inner, "after_gelu": length * inner, "probabilities": heads * length * length},
    }
    once = {
        **{"embedding_sum": length * embedding, "projection_input": length * embedding, "output": length * hidden},
        **{"pooler": hidden, "pooled": hidden, "gathered": predictions * hidden, "logits": predictions * 50},
        **{f"transform_{name}": predictions * embedding for name in ("before_gelu", "after_gelu", "normalised")},
    }
    plain = 3 * sum(block.values()) + sum(once.values())
    assert estimate_costs(SMALL, length, predictions).activation_bytes_per_sequence == 4 * plain
    assert estimate_costs(SMALL, length, predictions, "bfloat16").activation_bytes_per_sequence == 2 * plain
    masks = 3 * (2 * length * hidden + 2 * heads * length * length) + length * embedding
    dropped = SMALL.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    assert estimate_costs(dropped, length, predictions).activation_bytes_per_sequence == 4 * (plain + masks)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"sequence_length": 513}, "between 1 and the 512 positions"),
        ({"sequence_length": 0}, "between 1 and the 512 positions"),
        ({"dtype": "float16"}, "`dtype` must be one of float32, bfloat16"),
    ],
)
def test_a_wrong_argument_is_one_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        estimate_costs(SMALL, **arguments)


def test_block_local_attention_costs_what_its_blocks_cost():
    local = AlbertConfig(attention="block_local", block_size=64, max_position_embeddings=4096)
    assert encoder_flops(local, 128) == encoder_flops(AlbertConfig(), 128)
    growth = estimate_costs(local, 4096).activation_bytes_per_sequence
    assert growth < 2.1 * estimate_costs(local, 2048).activation_bytes_per_sequence
    # 193 tokens instead of 4,096, in the products with keys and with values.
    saved = encoder_flops(local.replace(attention="full"), 4096) - encoder_flops(local, 4096)
    assert saved == 12 * 2 * 2 * 4096 * (4096 - 193) * 768
