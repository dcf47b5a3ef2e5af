"""What an ALBERT costs: parameters by part, arithmetic per token, memory for activations, and what sharing saves.

Letters: B batch, L sequence, P predictions, D hidden, E embedding, F intermediate, N heads, V vocabulary.
"""

import dataclasses
from typing import Literal

from albert_tf.config import AlbertConfig, ParameterCounts

Width = Literal["float32", "bfloat16"]
_BYTES = {"float32": 4, "bfloat16": 2}


@dataclasses.dataclass(frozen=True)
class Costs:
    """Parameters, arithmetic and memory of one config at one sequence length.

    Args:
        parameters: `ParameterCounts`.
        forward_flops_per_token: float. Encoder with pooler, one token of a full sequence, in floating point operations.
        training_flops_per_token: float. Three times forward, both pretraining heads included: the backward pass has two
            matrix products for each one of forward.
        activation_bytes_per_sequence: int. What one sequence keeps for the backward pass of pretraining.
    """

    parameters: ParameterCounts
    forward_flops_per_token: float
    training_flops_per_token: float
    activation_bytes_per_sequence: int


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The costs of a config, and of the same network without what makes it an ALBERT.

    Args:
        albert: `Costs` of the config as it is.
        unfactorised: `Costs` with word embeddings of the hidden width (E = D).
        unshared: `Costs` with weights of its own for each layer.
        bert: `Costs` with neither.
    """

    albert: Costs
    unfactorised: Costs
    unshared: Costs
    bert: Costs


def encoder_flops(config: AlbertConfig, sequence_length: int) -> int:
    """Floating point operations of one full sequence through encoder and pooler.

    Matrix products only, a multiplication and an addition being two operations; look-ups, normalisation, activations
    and softmax are left out. Each application of a shared block counts.

    Args:
        config: `AlbertConfig`.
        sequence_length: int. L.

    Returns:
        int. Operations for one sequence, not for one token.

    Example:

    >>> encoder_flops(AlbertConfig.from_preset("base_v2"), 128) // 10**6
    22373
    """
    length, hidden, inner = sequence_length, config.hidden_size, config.intermediate_size
    projection = 2 * length * config.embedding_size * hidden if config.has_projection else 0
    attention = 4 * 2 * length * hidden * hidden + 2 * 2 * length * _keys_per_token(config, length) * hidden
    ffn = 2 * 2 * length * hidden * inner
    return projection + _num_blocks(config) * (attention + ffn) + 2 * hidden * hidden


def head_flops(config: AlbertConfig, num_predictions: int) -> int:
    """Floating point operations of both pretraining heads for one sequence, counted as in `encoder_flops`.

    Args:
        config: `AlbertConfig`.
        num_predictions: int. P, the masked positions of one sequence.

    Returns:
        int. Operations for one sequence.
    """
    transform = 2 * num_predictions * config.hidden_size * config.embedding_size
    logits = 2 * num_predictions * config.embedding_size * config.vocab_size
    return transform + logits + 2 * config.hidden_size * 2


def activation_values(config: AlbertConfig, sequence_length: int, num_predictions: int, has_scores: bool = True) -> int:
    """Numbers that one sequence of pretraining keeps from the forward for the backward pass.

    This assumes that every layer keeps its own (no rematerialisation), that each tensor is stored once, and that only
    inputs of matrix products, normalisations and activations and the outputs of softmax are needed. For one block:
    `8 L D` (its input, query, key, value, context, inputs of both normalisations, input of the feed-forward part),
    `2 L F` (before and after the activation) and `N L^2` (attention probabilities). Dropout adds its masks, and the
    probabilities that it has changed. A framework that does not fuse normalisation and activation keeps more: the peak
    memory of TensorFlow on a CPU grows 1.5 (XLA) to 1.9 times as fast with the batch, measured with base at 128 tokens;
    on GPUs it is what the compiler says, up to 4 % (`tools/accelerators/gpu_memory.md`).

    Args:
        config: `AlbertConfig`.
        sequence_length: int. L.
        num_predictions: int. P.
        has_scores: bool. Whether attention probabilities are kept; flash attention keeps none.

    Returns:
        int. Numbers for one sequence; sharing does not change it.
    """
    length, hidden, embedding = sequence_length, config.hidden_size, config.embedding_size
    scores = config.num_attention_heads * length * _keys_per_token(config, length) if has_scores else 0
    block = 8 * length * hidden + 2 * length * config.intermediate_size + scores
    embeddings = length * embedding * (2 if config.has_projection else 1)
    if config.hidden_dropout_prob:
        block += 2 * length * hidden
        embeddings += length * embedding
    if config.attention_probs_dropout_prob:
        block += 2 * scores
    masked_lm = num_predictions * (hidden + 3 * embedding + config.vocab_size)
    return embeddings + _num_blocks(config) * block + length * hidden + 2 * hidden + masked_lm


def estimate_costs(
    config: AlbertConfig, sequence_length: int = 512, num_predictions: int = 20, dtype: Width = "float32"
) -> Costs:
    """Costs of a config for full sequences.

    Args:
        config: `AlbertConfig`.
        sequence_length: int. L; the costs of attention grow with its square.
        num_predictions: int. P, the masked positions of one sequence.
        dtype: str. `"float32"` or `"bfloat16"`, what activations are kept in.

    Returns:
        `Costs`.

    Raises:
        ValueError: the length does not fit the config, or the dtype is unknown.

    Example:

    >>> costs = estimate_costs(AlbertConfig.from_preset("base_v2"), sequence_length=128)
    >>> round(costs.forward_flops_per_token / 1e6), round(costs.activation_bytes_per_sequence / 2**20)
    (175, 84)
    """
    if not 1 <= sequence_length <= config.max_position_embeddings:
        raise ValueError(
            f"`sequence_length` must be between 1 and the {config.max_position_embeddings} positions of the config. "
            f"Received: sequence_length={sequence_length}; shorten it, or raise `max_position_embeddings`."
        )
    if dtype not in _BYTES:
        raise ValueError(f"`dtype` must be one of {', '.join(_BYTES)}. Received: dtype={dtype!r}.")
    forward = encoder_flops(config, sequence_length)
    return Costs(
        parameters=config.parameter_counts(),
        forward_flops_per_token=forward / sequence_length,
        training_flops_per_token=3 * (forward + head_flops(config, num_predictions)) / sequence_length,
        activation_bytes_per_sequence=activation_values(config, sequence_length, num_predictions) * _BYTES[dtype],
    )


def compare_costs(
    config: AlbertConfig, sequence_length: int = 512, num_predictions: int = 20, dtype: Width = "float32"
) -> Comparison:
    """Costs of a config beside those of the same network without factorisation and without sharing.

    Args:
        config: `AlbertConfig`.
        sequence_length: int. L.
        num_predictions: int. P.
        dtype: str. As for `estimate_costs`.

    Returns:
        `Comparison`.

    Raises:
        ValueError: as `estimate_costs`.

    Example:

    >>> both = compare_costs(AlbertConfig.from_preset("base_v2"))
    >>> both.bert.parameters.encoder // both.albert.parameters.encoder
    9
    """
    wide, unshared = {"embedding_size": config.hidden_size}, {"share": "none", "num_hidden_groups": 1}
    variants = (config, config.replace(**wide), config.replace(**unshared), config.replace(**wide, **unshared))
    return Comparison(*(estimate_costs(variant, sequence_length, num_predictions, dtype) for variant in variants))


def _num_blocks(config: AlbertConfig) -> int:
    return config.num_hidden_layers * config.inner_group_num


def _keys_per_token(config: AlbertConfig, length: int) -> int:
    """How many tokens a token attends to: all, or the first one and those of three blocks."""
    is_full = config.attention == "full" or length <= 2 * config.block_size
    return length if is_full else 3 * config.block_size + 1
