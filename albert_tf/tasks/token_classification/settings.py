"""Settings of tags of words and of labelled spans of texts."""

import pydantic

from albert_tf.tasks.settings import Settings


class TagSettings(Settings):
    """What a model that tags words or spans reads and predicts.

    Args:
        labels: the tags in order of their ids. None: those of the training examples, sorted.
        doc_stride: distance in tokens of the starts of two windows of a text. None: 128, or a third of `max_length` if
            that is less.
        tag_words: whether to tag words, not tokens, in texts whose words are not given, as a model needs that was
            trained on words. None: if all training texts consist of words. `evaluate` and `predict` do as `finetune`
            did.
    """

    labels: tuple[str, ...] | None = None
    doc_stride: int | None = pydantic.Field(default=None, ge=1)
    tag_words: bool | None = None
