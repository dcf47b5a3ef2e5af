"""Settings of multiple choice."""

import pydantic

from albert_tf.tasks.settings import Settings


class ChoiceSettings(Settings):
    """What a model that chooses reads and predicts.

    Args:
        max_question_length: of longer questions with their choice only this number of last ids is kept. None: 128.
    """

    max_question_length: int | None = pydantic.Field(default=None, ge=1)
