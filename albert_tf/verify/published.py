"""Known outputs of published weights, from the tests of other projects.

Letters: L sequence, D hidden, V vocabulary.

References:
    Tests of Hugging Face transformers (`test_modeling_albert.py`: encoder; `test_modeling_tf_albert.py`: masked-LM
    head) and KerasHub (`albert_backbone_test.py`, preset `albert_base_en_uncased`), all for version 2 of the base
    model, with their tolerances.
"""

import dataclasses
from collections.abc import Sequence
from typing import Literal

from albert_tf.config import AlbertConfig


@dataclasses.dataclass(frozen=True)
class PublishedSlice:
    """A few numbers of one output.

    Attributes:
        part: part of the checkpoint that computes the output.
        output: its name: `sequence_output` [L, D] and `pooled_output` [D] of the encoder, `logits` [L, V].
        input_ids: L ids of one row.
        index: index of the values in the output.
        expected: the values.
        tolerance: largest absolute difference.
        attention_mask: L values; empty means all 1.
    """

    part: Literal["encoder", "pooler", "masked_lm"]
    output: str
    input_ids: tuple[int, ...]
    index: tuple[int | slice, ...]
    expected: Sequence
    tolerance: float
    attention_mask: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class PublishedText:
    """A text and its ids.

    Attributes:
        text: str.
        input_ids: L ids, including [CLS] and [SEP].
    """

    text: str
    input_ids: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class PublishedModel:
    """A published model.

    Attributes:
        names: endings of its folder names, in lower case with `_` between words; the first one is displayed.
        config: AlbertConfig.
        slices: known outputs.
        texts: known token ids.
    """

    names: tuple[str, ...]
    config: AlbertConfig
    slices: tuple[PublishedSlice, ...]
    texts: tuple[PublishedText, ...] = ()


PUBLISHED = (
    PublishedModel(
        names=("albert_base_v2", "albert_base_en_uncased"),
        config=AlbertConfig.from_preset("base_v2"),
        slices=(
            PublishedSlice(
                "encoder",
                "sequence_output",
                (0, 345, 232, 328, 740, 140, 1695, 69, 6078, 1588, 2),
                (slice(1, 4), slice(1, 4)),
                ((-0.6513, 1.5035, -0.2766), (-0.6515, 1.5046, -0.2780), (-0.6512, 1.5049, -0.2784)),
                1e-4,
                attention_mask=(0, *[1] * 10),
            ),
            PublishedSlice(
                "masked_lm",
                "logits",
                (0, 1, 2, 3, 4, 5),
                (slice(3), slice(3)),
                (
                    (4.595668, 0.74462754, -1.818147),
                    (4.5954347, 0.7454184, -1.8188258),
                    (4.5954905, 0.7448235, -1.8182316),
                ),
                1e-4,
            ),
            PublishedSlice(
                "encoder",
                "sequence_output",
                (2, 13, 1, 3),
                (0, slice(5)),
                (1.830863, 1.698645, -1.819195, -0.53382, -0.38114),
                1e-2,
            ),
            PublishedSlice(
                "pooler",
                "pooled_output",
                (2, 13, 1, 3),
                (slice(5),),
                (0.328261, -0.415397, -0.388745, 0.156846, 0.657874),
                1e-2,
            ),
        ),
        texts=(
            PublishedText(
                "The quick brown fox jumps over the lazy dog.",
                (2, 14, 2231, 886, 2385, 17659, 84, 14, 16792, 1952, 9, 3),
            ),
        ),
    ),
)
