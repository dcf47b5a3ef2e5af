"""The shape of an ALBERT: one frozen record of its hyperparameters, its published sizes, its numbers of parameters.

Letters: V vocabulary, E embedding, D hidden, F intermediate, N heads, H head size (= D / N).
"""

import dataclasses
import pathlib
import sys
from collections.abc import Mapping
from typing import Any, Literal, get_args

from albert_tf.files.json import nearest, read_json

Share = Literal["all", "attention", "ffn", "none"]
Origin = Literal["google", "huggingface"]
Attention = Literal["full", "block_local"]

ACTIVATIONS = ("gelu", "gelu_new", "relu", "tanh", "linear")
# A config comes from a file that somebody else may have written: a model of it must be made in bounded time.
MAX_LAYERS, MAX_SIZE = 256, 2**31 - 1
_BOUNDED_BY_LAYERS = ("num_hidden_layers", "num_hidden_groups", "inner_group_num")

# Keys of published files that say nothing about the numbers this library computes. Older versions of transformers list
# most of these for every model, those about generating text included.
_OF_GOOGLE = {"net_structure_type", "gap_size", "num_memory_blocks", "down_scale_factor", "ln_type", "layers_to_keep"}
_OF_HUGGING_FACE = {
    *("model_type", "architectures", "transformers_version", "_name_or_path", "torch_dtype", "dtype", "bos_token_id"),
    *("eos_token_id", "pad_token_id", "sep_token_id", "cls_token_id", "id2label", "label2id"),
    *("position_embedding_type", "output_past", "output_attentions", "output_hidden_states", "tie_word_embeddings"),
    *("return_dict", "use_cache", "problem_type", "_num_labels", "num_labels", "is_decoder"),
    *("add_cross_attention", "chunk_size_feed_forward", "use_return_dict", "classifier_dropout", "start_n_top"),
    *("end_n_top", "finetuning_task", "pruned_heads", "torchscript", "use_bfloat16", "task_specific_params"),
    *("is_encoder_decoder", "gradient_checkpointing", "cross_attention_hidden_size", "do_sample", "early_stopping"),
    *("length_penalty", "max_length", "min_length", "num_beams", "num_return_sequences", "repetition_penalty"),
    *("temperature", "top_k", "top_p", "no_repeat_ngram_size", "bad_words_ids", "decoder_start_token_id", "prefix"),
    *("xla_device", "tokenizer_class", "tf_legacy_loss", "tie_encoder_decoder", "num_beam_groups", "diversity_penalty"),
    *("typical_p", "encoder_no_repeat_ngram_size", "output_scores", "return_dict_in_generate", "forced_bos_token_id"),
    *("forced_eos_token_id", "remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens"),
    *("begin_suppress_tokens", "_attn_implementation_autoset", "objective"),
}


@dataclasses.dataclass(frozen=True)
class AlbertConfig:
    """Hyperparameters of an ALBERT encoder, named as in the published `albert_config.json`.

    Args:
        vocab_size: int. Number of pieces, V.
        embedding_size: int. Width of the embedding tables, E.
        hidden_size: int. Width of the encoder, D.
        num_hidden_layers: int. How often a transformer block is applied in depth.
        num_hidden_groups: int. How many groups of blocks have weights of their own.
        inner_group_num: int. Blocks applied one after another in each layer.
        num_attention_heads: int. Heads, N; must divide `hidden_size`.
        intermediate_size: int. Width of the feed-forward part, F.
        hidden_act: str. `"gelu_new"` is the tanh form (what Google's "gelu" means), `"gelu"` the exact erf form (what
            Hugging Face's "gelu" means), or `"relu"`, `"tanh"`, `"linear"`.
        hidden_dropout_prob: float. Dropout after embeddings, attention output and feed-forward output.
        attention_probs_dropout_prob: float. Dropout on attention probabilities.
        max_position_embeddings: int. Longest sequence.
        type_vocab_size: int. Number of token types.
        initializer_range: float. Standard deviation of the truncated normal initialiser.
        layer_norm_eps: float. Added to the variance by layer normalisations.
        classifier_dropout_prob: float. Dropout before the head of a task; that of sentence order has none.
        share: str. What is shared between layers: `"all"` (ALBERT), `"attention"`, `"ffn"`, or `"none"` (as in BERT).
        embedding_projection: bool or None. Whether embeddings are mapped from E to D. None: only if the two differ, as
            in Google's code; Hugging Face and KerasHub also map embeddings of the hidden width.
        masked_lm_layer_norm_eps: float or None. As `layer_norm_eps`, for the masked-LM head. None: the same; KerasHub's
            head has 1e-5.
        attention: str. `"full"`, or `"block_local"` for long inputs: tokens attend to those of their block, of the two
            blocks beside it and to the first token, which attends to all. Costs then grow with the length, not with
            its square. Inputs of up to two blocks get the outputs of full attention.
        block_size: int. Tokens of a block.

    Raises:
        ValueError: a value is out of range, or values contradict each other.

    Example:

    >>> config = AlbertConfig.from_preset("base_v2")
    >>> config.num_parameters("encoder")
    11683584
    >>> config.replace(share="none").num_parameters("encoder") > 80_000_000
    True

    References:
        ALBERT, arXiv 1909.11942, tables 1, 3 and 4; `modeling.py` (AlbertConfig) of google-research/albert.
    """

    vocab_size: int = 30000
    embedding_size: int = 128
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_hidden_groups: int = 1
    inner_group_num: int = 1
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu_new"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    classifier_dropout_prob: float = 0.1
    share: Share = "all"
    embedding_projection: bool | None = None
    masked_lm_layer_norm_eps: float | None = None
    attention: Attention = "full"
    block_size: int = 128

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if getattr(value, "ndim", None) == 0:  # a number of NumPy
                object.__setattr__(self, field.name, value := value.item())
            _check_value(field.name, value, field.type)
        choices = {"hidden_act": ACTIVATIONS, "share": get_args(Share), "attention": get_args(Attention)}
        for name, allowed in choices.items():
            if (value := getattr(self, name)) not in allowed:
                hint = '; the tanh form of GELU is "gelu_new", the exact form "gelu"' if name == "hidden_act" else ""
                raise ValueError(f"`{name}` must be one of {', '.join(allowed)}. Received: {name}={value!r}{hint}.")
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"`hidden_size` must be a multiple of `num_attention_heads`. Received: hidden_size={self.hidden_size}, "
                f"num_attention_heads={self.num_attention_heads}; choose heads of equal size."
            )
        if self.num_hidden_groups > self.num_hidden_layers:
            raise ValueError(
                f"`num_hidden_groups` must not exceed `num_hidden_layers`. Received: num_hidden_groups="
                f"{self.num_hidden_groups}, num_hidden_layers={self.num_hidden_layers}; lower the number of groups."
            )
        if self.num_hidden_layers * self.inner_group_num > MAX_LAYERS:
            raise ValueError(
                f"`num_hidden_layers` times `inner_group_num` must be at most {MAX_LAYERS}. Received: "
                f"num_hidden_layers={self.num_hidden_layers}, inner_group_num={self.inner_group_num}."
            )
        if self.share != "all" and self.num_hidden_groups != 1:
            raise ValueError(
                f"`num_hidden_groups` must be 1 where `share` is not 'all'. Received: num_hidden_groups="
                f"{self.num_hidden_groups}, share={self.share!r}; groups and partial sharing exclude each other."
            )
        if self.embedding_projection is False and self.embedding_size != self.hidden_size:
            raise ValueError(
                "`embedding_projection` must not be false where `embedding_size` differs from `hidden_size`. Received: "
                f"embedding_size={self.embedding_size}, hidden_size={self.hidden_size}; leave it out."
            )

    @property
    def head_size(self) -> int:
        """H, the width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def has_projection(self) -> bool:
        """Whether embeddings are mapped from E to D."""
        return self.embedding_size != self.hidden_size or self.embedding_projection is True

    @property
    def head_layer_norm_eps(self) -> float:
        """The epsilon of the masked-LM head."""
        return self.layer_norm_eps if self.masked_lm_layer_norm_eps is None else self.masked_lm_layer_norm_eps

    @property
    def num_attention_groups(self) -> int:
        """How many sets of attention weights the layers have between them."""
        return self.num_hidden_layers if self.share in ("ffn", "none") else self.num_hidden_groups

    @property
    def num_ffn_groups(self) -> int:
        """How many sets of feed-forward weights the layers have between them."""
        return self.num_hidden_layers if self.share in ("attention", "none") else self.num_hidden_groups

    def group_of_layer(self, layer: int, num_groups: int | None = None) -> int:
        """The group whose weights layer number `layer` uses; groups are equal, consecutive runs of layers.

        Integer arithmetic; the reference's float arithmetic is one off for a few unpublished sizes (22 groups, say).
        """
        return layer * (self.num_hidden_groups if num_groups is None else num_groups) // self.num_hidden_layers

    def replace(self, **changes: Any) -> "AlbertConfig":
        """A copy with some values changed; raises ValueError, with a suggestion, for an unknown name."""
        _reject_unknown(changes, "AlbertConfig.replace")
        return dataclasses.replace(self, **changes)

    def parameter_counts(self) -> "ParameterCounts":
        """Exact number of parameters of each part."""
        embedding, hidden, inner = self.embedding_size, self.hidden_size, self.intermediate_size
        rows = self.vocab_size + self.max_position_embeddings + self.type_vocab_size
        attention = 4 * (hidden * hidden + hidden) + 2 * hidden
        ffn = hidden * inner + inner + inner * hidden + hidden + 2 * hidden
        return ParameterCounts(
            embeddings=rows * embedding + 2 * embedding,
            projection=embedding * hidden + hidden if self.has_projection else 0,
            attention=self.inner_group_num * self.num_attention_groups * attention,
            ffn=self.inner_group_num * self.num_ffn_groups * ffn,
            pooler=hidden * hidden + hidden,
            masked_lm_head=hidden * embedding + embedding + 2 * embedding + self.vocab_size,
            sentence_order_head=2 * hidden + 2,
        )

    def num_parameters(self, part: Literal["encoder", "pretraining"] = "encoder") -> int:
        """Exact number of parameters: `"encoder"` with pooler, or `"pretraining"` with both pretraining heads too."""
        if part not in ("encoder", "pretraining"):
            raise ValueError(f"`part` must be 'encoder' or 'pretraining'. Received: part={part!r}.")
        return getattr(self.parameter_counts(), part)

    def to_dict(self) -> dict[str, Any]:
        """Every field by name, as `AlbertConfig(**values)` takes it."""
        return dataclasses.asdict(self)

    @classmethod
    def from_preset(cls, name: str) -> "AlbertConfig":
        """A published size by name, such as `"base_v2"`, or `"tiny"`; raises ValueError if `PRESETS` lacks it."""
        if not isinstance(name, str) or name not in PRESETS:
            raise ValueError(
                f"`name` must be one of {', '.join(PRESETS)}. Received: name={name!r}{nearest(name, PRESETS)}"
            )
        return cls(**PRESETS[name])

    @classmethod
    def from_json(cls, path: str | pathlib.Path) -> "AlbertConfig":
        """Reads Google's `albert_config.json` or a Hugging Face `config.json`, which is detected automatically.

        Raises:
            ValueError: the file is not JSON, not the config of an ALBERT, or has an unknown key; the message names it.
        """
        values = read_json(path, cure="check that it is the right file")
        try:
            return cls.from_published(values)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    @classmethod
    def from_published(cls, values: Mapping[str, Any], origin: Origin | None = None) -> "AlbertConfig":
        """Makes a config from the values of a published file.

        Args:
            values: by the keys of the file.
            origin: who wrote it, which decides what "gelu" means. None: inferred from the keys.

        Raises:
            ValueError: the values are not those of an ALBERT, or there is an unknown key or an invalid value.
        """
        if origin is None:
            origin = "huggingface" if _OF_HUGGING_FACE & set(values) else "google"
        model_type = values.get("model_type", "albert")
        if model_type != "albert":
            raise ValueError(
                f"`model_type` must be 'albert'. Received: model_type={model_type!r}; this is another model."
            )
        ignored = _OF_GOOGLE | (_OF_HUGGING_FACE if origin == "huggingface" else set())
        known = {key: value for key, value in values.items() if key not in ignored}
        _reject_unknown(known, f"a {origin} config")
        if origin == "google" and known.get("hidden_act") == "gelu":
            known["hidden_act"] = "gelu_new"
        if known.get("hidden_act") in ("", None) and "hidden_act" in known:
            known["hidden_act"] = "linear"
        if known.get("share", "all") != "all":
            known["num_hidden_groups"] = 1  # such files hold one group for each layer
        return cls(**_PUBLISHED_DEFAULTS | known)


@dataclasses.dataclass(frozen=True)
class ParameterCounts:
    """Number of parameters of each part.

    Args:
        embeddings: int. The three tables and their layer normalisation.
        projection: int. From E to D; 0 without one.
        attention: int. Every set of attention weights, with its layer normalisation.
        ffn: int. Every set of feed-forward weights, with its layer normalisation.
        pooler: int.
        masked_lm_head: int. Without the word embeddings, which it shares.
        sentence_order_head: int.
    """

    embeddings: int
    projection: int
    attention: int
    ffn: int
    pooler: int
    masked_lm_head: int
    sentence_order_head: int

    @property
    def encoder(self) -> int:
        """All without the heads of pretraining."""
        return self.embeddings + self.projection + self.attention + self.ffn + self.pooler

    @property
    def pretraining(self) -> int:
        """All with both heads of pretraining."""
        return self.encoder + self.masked_lm_head + self.sentence_order_head


# What the reference and Hugging Face both assume for a key that a published file leaves out: the xxlarge size.
_PUBLISHED_DEFAULTS: dict[str, Any] = {"hidden_size": 4096, "num_attention_heads": 64, "intermediate_size": 16384}

_SIZES = {
    "base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
    "large": {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
    "xlarge": {"hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 8192},
    "xxlarge": {"hidden_size": 4096, "num_hidden_layers": 12, "num_attention_heads": 64, "intermediate_size": 16384},
}
_V1_DROPOUT = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}

PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {
        **{"vocab_size": 4000, "embedding_size": 64, "hidden_size": 128, "num_hidden_layers": 3},
        **{"num_attention_heads": 4, "intermediate_size": 512},
    },
    **{f"{size}_v1": {**values, **(_V1_DROPOUT if size != "xxlarge" else {})} for size, values in _SIZES.items()},
    **{f"{size}_v2": dict(values) for size, values in _SIZES.items()},
}


def _reject_unknown(values: Mapping[str, Any], where: str) -> None:
    names = [field.name for field in dataclasses.fields(AlbertConfig)]
    for key in values:
        if key not in names:
            raise ValueError(f"Every key of {where} must be known. Received: {key!r}{nearest(key, names)}")


def _check_value(name: str, value: Any, kind: Any) -> None:
    if kind is int:
        most = MAX_LAYERS if name in _BOUNDED_BY_LAYERS else MAX_SIZE
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise ValueError(f"`{name}` must be an integer from 1 to {most}. Received: {name}={_shortened(value)}.")
    elif kind == bool | None and not isinstance(value, bool | None):
        raise ValueError(f"`{name}` must be true, false or null. Received: {name}={_shortened(value)}.")
    elif kind is float or (kind == float | None and value is not None):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"`{name}` must be a number. Received: {name}={_shortened(value)}.")
        if name.endswith("_prob") and not 0.0 <= value < 1.0:
            raise ValueError(f"`{name}` must be at least 0 and below 1. Received: {name}={value!r}.")
        if not name.endswith("_prob") and not 0.0 < value <= sys.float_info.max:  # NaN is neither above nor below
            raise ValueError(f"`{name}` must be a finite number above 0. Received: {name}={_shortened(value)}.")


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
