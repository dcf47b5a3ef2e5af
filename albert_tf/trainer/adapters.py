"""Fine-tuning of few weights: low-rank updates (LoRA) of attention, with the pretrained weights held fixed."""

from typing import Any

from albert_tf.models.base import AlbertBase


def add_adapters(model: AlbertBase, rank: int) -> None:
    """Makes low-rank updates of the query and value kernels, and the head, the only weights that are trained.

    Blocks with weights of their own, as with `share="none"`, each get an update; a shared one gets one for all its
    layer calls. The updates are added to the kernels when the model is saved.

    Args:
        model: a task model, before it is compiled.
        rank: of each update, which has `2 * hidden_size * rank` values.

    References:
        LoRA, arXiv 2106.09685.
    """
    encoder: Any = model.encoder  # pyright: ignore[reportAttributeAccessIssue]
    for variable in encoder.weights:
        variable.trainable = False
    for group in encoder.attention_blocks:
        for block in group:
            for dense in (block.query, block.value):
                dense.enable_lora(rank)
