"""The features of a pretraining example, each declared once: name, name on disk, shape and type.

The writer and the reader are derived from these declarations.

Shape letters: B batch, L sequence, P predictions, S examples per packed row.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

Role = Literal["input", "label", "extra"]
T = TypeVar("T")


@dataclass(frozen=True)
class Feature:
    """One named array of an example.

    Args:
        name: name in models, datasets and NumPy arrays.
        disk_name: name in TFRecords, as in the reference.
        axes: shape of a batch: `"B"`, `"BL"`, `"BP"` or `"BS"`.
        dtype: `"int32"` or `"float32"` in memory; integers are int64 on disk.
        role: `"input"` of the model, `"label"` of its losses, or `"extra"` (on disk only).

    Example:

    >>> Feature("token_type_ids", "segment_ids", "BL", "int32", "input").row_shape({"L": 512})
    (512,)
    """

    name: str
    disk_name: str
    axes: str
    dtype: str
    role: Role

    def row_shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Returns the shape without the batch axis, for `sizes` such as `{"L": 512, "P": 77}`."""
        return tuple(sizes[axis] for axis in self.axes[1:])

    @property
    def disk_dtype(self) -> str:
        """Type in a TFRecord: `"int64"` or `"float32"`."""
        return "int64" if self.dtype == "int32" else self.dtype


PRETRAINING_FEATURES = (
    Feature("input_ids", "input_ids", "BL", "int32", "input"),
    Feature("attention_mask", "input_mask", "BL", "int32", "input"),
    Feature("token_type_ids", "segment_ids", "BL", "int32", "input"),
    Feature("token_boundary", "token_boundary", "BL", "int32", "extra"),
    Feature("masked_lm_positions", "masked_lm_positions", "BP", "int32", "input"),
    Feature("masked_lm_ids", "masked_lm_ids", "BP", "int32", "label"),
    Feature("masked_lm_weights", "masked_lm_weights", "BP", "float32", "label"),
    Feature("sentence_order_labels", "next_sentence_labels", "B", "int32", "label"),
)
"""Every feature of pretraining examples."""

# Additional features of packed rows, by the feature that they follow.
_PACKED = {
    "token_boundary": (
        Feature("example_ids", "example_ids", "BL", "int32", "input"),
        Feature("position_ids", "position_ids", "BL", "int32", "input"),
        Feature("cls_positions", "cls_positions", "BS", "int32", "input"),
    ),
    "sentence_order_labels": (Feature("sentence_order_weights", "sentence_order_weights", "BS", "float32", "label"),),
}
PACKED_FEATURES = tuple(
    packed
    for feature in PRETRAINING_FEATURES
    for packed in (replace(feature, axes="BS" if feature.axes == "B" else feature.axes), *_PACKED.get(feature.name, ()))
)


def with_role(features: Iterable[Feature], *roles: Role) -> tuple[Feature, ...]:
    """Returns the features that have one of `roles`, in order.

    Example:

    >>> [feature.name for feature in with_role(PRETRAINING_FEATURES, "label")]
    ['masked_lm_ids', 'masked_lm_weights', 'sentence_order_labels']
    """
    return tuple(feature for feature in features if feature.role in roles)


def split_roles(features: Sequence[Feature], values: Mapping[str, T]) -> tuple[dict[str, T], dict[str, T]]:
    """Splits values by name of the feature into inputs and labels."""
    inputs = {feature.name: values[feature.name] for feature in features if feature.role == "input"}
    return inputs, {feature.name: values[feature.name] for feature in features if feature.role == "label"}


def features_to_learn(objective: str, packed: bool = False) -> tuple[Feature, ...]:
    """Returns the model's inputs and labels for an objective, which the sentence-pair labels are named after.

    On disk, all objectives have the same features.

    Example:

    >>> [feature.name for feature in features_to_learn("next_sentence")][-2:]
    ['masked_lm_weights', 'next_sentence_labels']
    """
    features = with_role(PACKED_FEATURES if packed else PRETRAINING_FEATURES, "input", "label")
    renamed = {f"sentence_order_{kind}": f"{objective}_{kind}" for kind in ("labels", "weights")}
    return tuple(
        replace(feature, name=renamed.get(feature.name, feature.name))
        for feature in features
        if objective != "none" or feature.name not in renamed
    )
