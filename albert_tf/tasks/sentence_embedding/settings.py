"""Settings of embeddings of sentences."""

import pydantic

from albert_tf.tasks.settings import TableSettings
from albert_tf.tasks.table import Objective, Pooling


class EmbeddingSettings(TableSettings):
    """What a model that embeds sentences reads and predicts.

    Args:
        objective: for sentence embeddings, what is minimised: `"similarity"` for pairs with numbers, `"ranking"` for
            pairs of similar sentences, or `"triplet"`; see AlbertForSentenceEmbedding. With `"ranking"` on several
            devices, each compares its own part of a batch.
        negative_column: column of sentences that differ from the others of their row.
        largest_label: labels to train on are similarities from 0 to this number.
        normalize: whether embeddings have length 1. None: as in the pretrained model, by default not.
        pooling: `"mean"`, `"cls"`, `"max"` or `"mean_sqrt_len"`, see AlbertForSentenceEmbedding. None: as in the
            pretrained model, by default the mean.
    """

    objective: Objective = "similarity"
    negative_column: str | None = None
    largest_label: float = pydantic.Field(default=1.0, gt=0)
    normalize: bool | None = None
    pooling: Pooling | None = None

    def check(self) -> None:
        super().check()
        if self.main_score not in (None, "pearson", "spearman"):
            raise ValueError(
                "`main_score` must be 'spearman' or 'pearson' for sentence embeddings. Received: "
                f"main_score={self.main_score!r}."
            )
        if self.negative_column is not None and self.objective == "similarity":
            raise ValueError(
                "`negative_column` must be None with objective='similarity', which does not use it; 'ranking' and "
                f"'triplet' do. Received: negative_column={self.negative_column!r}."
            )
