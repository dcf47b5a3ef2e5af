"""What computes a model's outputs: the protocol, and the batches that are computed.

Letters: B rows of a batch, L sequence, P predictions, V vocabulary.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np

from albert_tf.data.finetuning.encoded import rows_by_length
from albert_tf.data.finetuning.few_shapes import padded_length, power_of_two
from albert_tf.inference.progress import counted
from albert_tf.tasks.outputs import Computed, Rows

INPUTS: tuple[str, ...] = ("input_ids", "attention_mask", "token_type_ids")
# Of the beam head: 1 where no answer can start or end.
P_MASK = "p_mask"
_POSITIONS, _MASKED_LM = "masked_lm_positions", "masked_lm_logits"


class Network(Protocol):
    """A model's network; its outputs have the names of the Keras models."""

    @property
    def name(self) -> str:
        """What computes it: `"keras"`, `"tensorflow"`, `"onnxruntime"` or `"openvino"`."""
        ...

    @property
    def precision(self) -> str:
        """Of the computation, such as `"float32"`."""
        ...

    def compute(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Computes the outputs of a batch; may be called from several threads.

        Args:
            batch: int32 [B, L] or, in multiple choice, [B, C, L]: `input_ids`, `attention_mask`, `token_type_ids`; for
                answers also `p_mask`, for pieces `masked_lm_positions` [B, P].

        Returns:
            float32 arrays by name, such as `logits`; `masked_lm_logits` are those at the positions, [B, P, V].
        """
        ...


def compute_rows(
    network: Network,
    rows: Rows,
    batch_size: int,
    max_tokens: int | None,
    shows_progress: bool = False,
    few_shapes: bool = False,
) -> Iterator[Computed]:
    """Computes rows in batches of similar length, the longest first.

    Args:
        network: what computes them.
        rows: the rows.
        batch_size: maximum number of rows of a batch.
        max_tokens: maximum number of their tokens; None: no limit.
        shows_progress: whether the rows are counted for a progress line.
        few_shapes: whether batches have few lengths and numbers of rows, with padding and copies of their last row,
            which are left out of what is returned.
    """
    lengths, width, multiple = rows.lengths, getattr(rows, "num_choices", 1), 1
    if few_shapes:
        multiple, batch_size = None, min(batch_size, power_of_two(len(lengths)))
        lengths = np.array([padded_length(length) for length in lengths.tolist()], np.int32)
    limit = None if max_tokens is None else max_tokens // width
    batches = rows_by_length(lengths, batch_size, limit, longest_first=True)
    for indices in counted(batches, len(lengths)) if shows_progress else batches:
        count, size = len(indices), len(indices)
        if few_shapes:
            size = batch_size if limit is None else max(count, min(batch_size, limit // int(lengths[indices[0]])))
        batch = rows.batch(np.pad(indices, (0, size - count), mode="edge"), multiple)
        parts = batch, network.compute(batch)
        yield Computed(indices, *({name: array[:count] for name, array in part.items()} for part in parts))


def at_positions(outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Keeps the masked-LM logits at `masked_lm_positions` of those of all tokens, [B, L, V]."""
    if _POSITIONS not in batch or _MASKED_LM not in outputs:
        return dict(outputs)
    rows = np.arange(len(batch[_POSITIONS]))[:, None]
    return {**outputs, _MASKED_LM: outputs[_MASKED_LM][rows, batch[_POSITIONS]]}
