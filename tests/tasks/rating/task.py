"""Stars of texts, in files with a line such as "4 A fine film." for each."""

import dataclasses

import numpy as np

from albert_tf.data.finetuning.encoded import encode_texts
from albert_tf.metrics import ConstantScore, RegressionScores, regression_scores
from albert_tf.tasks.learned import LabelledRows, LearnedTask, write_table
from albert_tf.tasks.outputs import NUMBER, TensorSpec, collect, softmax
from albert_tf.tasks.settings import Settings


class RatingSettings(Settings):
    """What a model that rates reads and predicts.

    Args:
        labels: the numbers of stars, as strings.
        highest: the largest number of stars.
    """

    labels: tuple[str, ...] | None = None
    highest: int = 3


@dataclasses.dataclass(frozen=True)
class Rated:
    """Texts and their stars from 1, int [N]."""

    texts: list[str]
    stars: np.ndarray
    form: str = "lines of stars and a text"

    def __len__(self):
        return len(self.texts)


@dataclasses.dataclass(frozen=True)
class RatingEvaluation:
    """The stars that were predicted, and their scores."""

    stars: np.ndarray
    scores: RegressionScores
    is_constant: bool = False
    constant_score: ConstantScore | None = None
    notes: tuple[str, ...] = ()

    @property
    def main_score(self):
        return self.scores.pearson


class Rating(LearnedTask[RatingSettings]):
    """The mean number of stars of each text."""

    settings_class = RatingSettings
    predictions_file = "dev_predictions.tsv"
    main_score = "pearson"

    def encode(self, *texts):
        return self.rows(Rated(list(texts[0]), np.zeros(len(texts[0]))))

    def rows(self, data):
        return encode_texts(self.tokenizer, data.texts, None, self.max_length)

    def decode(self, encoded, computed):
        probabilities = softmax(collect(computed, "logits", len(encoded)))
        return (probabilities @ np.arange(1, 1 + probabilities.shape[1])).tolist()

    def arrays(self, predictions):
        return {"stars": np.array(predictions, np.float32)}

    def specs(self, width):
        return {"stars": TensorSpec(NUMBER, (None,))}

    def read(self, path):
        rows = [line.split(" ", 1) for line in path.read_text().splitlines()]
        return Rated([text for _, text in rows], np.array([int(stars) for stars, _ in rows]))

    def keys(self, data):
        return data.texts

    def model_arguments(self, train):
        return {"labels": [str(number) for number in range(1, 1 + self.settings.highest)]}

    def training_examples(self, train):
        return LabelledRows(self.rows(train), (train.stars - 1).astype(np.int32))

    def evaluator(self, compute, data):
        encoded = self.rows(data)

        def evaluate():
            stars = np.array(self.decode(encoded, compute(encoded, shows_progress=True)))
            return RatingEvaluation(stars, regression_scores(data.stars, stars))

        return evaluate

    def write_predictions(self, path, data, evaluation):
        write_table(path, ["stars", "text"], zip(evaluation.stars.round(3), data.texts))
