"""The result of a fine-tuning run, and its file."""

import math
import pathlib
from typing import Annotated, Any

import pydantic

from albert_tf.files.json import read_json
from albert_tf.metrics import (
    AnswerScores,
    ChoiceScores,
    ClassificationScores,
    ConstantScore,
    MultiLabelScores,
    RegressionScores,
    SquadScores,
    TagScores,
)
from albert_tf.trainer.run_folder import REPORT_FILE

Scores = (
    ClassificationScores | MultiLabelScores | RegressionScores | SquadScores | AnswerScores | TagScores | ChoiceScores
)
# Null in the file is a score that is undefined, such as the correlation of equal predictions.
_Score = Annotated[float, pydantic.BeforeValidator(lambda value: math.nan if value is None else value)]


class FinetuneReport(pydantic.BaseModel):
    """Result of a run.

    Attributes:
        folder: model and tokenizer in Hugging Face layout, `recipe.json`, its settings as `model.json`, this report as
            `metrics.json`, `metrics.jsonl` with one line per evaluation, and the predictions for `dev`.
        scores: on `dev`, with the weights that were kept.
        main_score: name of the score that evaluations are compared by.
        score_by_evaluation: the main score at each evaluation.
        kept_evaluation: evaluation of the weights that were kept, counted from 1.
        constant_score: name and value of the score of a prediction that is the same for all of `dev`, such as the most
            frequent label; None where there is none.
        no_answer_threshold: for questions without answers, the threshold with the best F1 on `dev`, which
            `evaluate` and `predict` then use.
        threshold: where a text may have any number of labels, the threshold of their probabilities, a number or numbers
            by label, which `evaluate` and `predict` then use.
        cut_examples: number of texts or questions to train on that are longer than the model reads.
        train_examples, dev_examples: number of examples.
        steps: number of updates.
        trained_parameters: number of weights that were trained.
        notes: what is wrong with data or result: examples of `dev` that are also in `train`, why a score is undefined,
            equal predictions for all examples, or a loss that did not fall.
        seconds: wall time since the run was last started.
        finished_before: whether the run was already finished, so that its report was only read.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")

    folder: pathlib.Path
    scores: Scores
    main_score: str
    score_by_evaluation: tuple[_Score, ...]
    kept_evaluation: int
    constant_score: ConstantScore | None = None
    no_answer_threshold: float | None = None
    threshold: float | dict[str, float] | None = None
    cut_examples: int
    train_examples: int
    dev_examples: int
    steps: int
    trained_parameters: int
    notes: tuple[str, ...]
    seconds: float
    finished_before: bool = False

    @pydantic.field_validator("scores", mode="before")
    @classmethod
    def _read_correlations(cls, scores: Any) -> Any:
        if isinstance(scores, dict) and "pearson" in scores:
            return {name: math.nan if value is None else value for name, value in scores.items()}
        return scores


def read_report(folder: pathlib.Path) -> FinetuneReport:
    """Reads the report of a finished run; raises ValueError if it is damaged."""
    cure = "remove it to train again"
    values = read_json(folder / REPORT_FILE, cure=cure)
    try:
        report = FinetuneReport.model_validate(values)
    except pydantic.ValidationError:
        raise ValueError(f"{folder / REPORT_FILE} is not the report of a fine-tuning run; {cure}.") from None
    return report.model_copy(update={"finished_before": True, "folder": folder})
