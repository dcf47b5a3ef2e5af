"""Settings of multiple choice."""

from typing import Literal

import pydantic

from albert_tf.tasks.settings import Settings


class ChoiceSettings(Settings):
    """What a model that chooses reads and predicts.

    Args:
        ragged_rows: what to do with questions with another number of choices than most, or rows of a table with more or
            fewer fields than its header: `"refuse"` the file, or `"drop"` them with a warning.
        max_question_length: of longer questions with their choice only this number of last ids is kept. None: 128.
    """

    ragged_rows: Literal["refuse", "drop"] = "refuse"
    max_question_length: int | None = pydantic.Field(default=None, ge=1)
