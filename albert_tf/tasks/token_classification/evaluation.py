"""Scores of predicted tags and entities.

Letters: N texts.
"""

import dataclasses
import sys
from collections.abc import Iterable, Sequence

from albert_tf.metrics import ConstantScore, TagScores, tag_scores
from albert_tf.metrics.entities import are_of_words, entity_scores, entity_tags, find_entities
from albert_tf.tasks.learned import label_notes
from albert_tf.tasks.token_classification.tagged import OUTSIDE, EncodedTags, find_words, first_tokens
from albert_tf.tokenization.spans import trim_span


@dataclasses.dataclass(frozen=True)
class TagEvaluation:
    """Predicted tags and their scores.

    Attributes:
        tags, predictions: for each text, the tags of its words; without words, of its tokens.
        spans: for each text, start, exclusive end and label of the predicted entities, in characters.
        expected: for each text, the same of its entities; None for texts of words, whose tags tell them.
        names: the model's tags.
    """

    tags: list[list[str]]
    predictions: list[list[str]]
    spans: list[list[tuple[int, int, str]]]
    expected: list[list[tuple[int, int, str]]] | None
    names: Sequence[str]

    @classmethod
    def of(
        cls, encoded: EncodedTags, tokens: Sequence[Sequence[str]], names: Sequence[str], tag_words: bool = False
    ) -> "TagEvaluation":
        """From the predicted tag of each token; `tag_words` as in TagSettings."""
        tags, predictions, spans, expected = [], [], [], []
        for text, offsets, labels, token_tags in zip(encoded.texts, encoded.spans, encoded.labels, tokens):
            if text.words is None:
                first, units = find_words(text.text, offsets) if tag_words else (range(len(offsets)), offsets)
                tags.append([names[labels[token]] if labels[token] >= 0 else OUTSIDE for token in first])
                expected.append(_trimmed(text.text, text.spans))
            else:
                first, units = first_tokens(text, offsets), text.words
                tags.append([*map(sys.intern, text.tags)])  # an object for each tag, not word
            predictions.append([OUTSIDE if token is None else token_tags[token] for token in first])
            entities = find_entities(_of_entities(names, predictions[-1]))
            edges = [(int(units[a][0]), int(units[b - 1][1]), label) for label, a, b in entities]
            spans.append(_trimmed(text.text, edges))
        return cls(tags, predictions, spans, expected or None, names)

    @property
    def scores(self) -> TagScores:
        """Scores of entities and tags; an entity in a text without words is right if its characters are."""
        tags, predictions = ([_of_entities(self.names, row) for row in each] for each in (self.tags, self.predictions))
        scores = tag_scores(tags, predictions)
        if self.expected is None:
            return scores
        expected, predicted = (
            [[(label, start, end) for start, end, label in row] for row in each] for each in (self.expected, self.spans)
        )
        return entity_scores(expected, predicted, scores.accuracy)

    @property
    def main_score(self) -> float:
        """F1 of entities, or accuracy if tags are of words."""
        return self.scores.accuracy if are_of_words(self.names) else self.scores.f1

    @property
    def is_constant(self) -> bool:
        """Whether all words have the same tag."""
        return len({tag for row in self.predictions for tag in row}) == 1

    @property
    def notes(self) -> list[str]:
        """Whether there is one tag alone, and labels whose scores are undefined."""
        notes = list(label_notes(self.scores.by_label))
        if self.constant_score.value == 1:
            tag = next(tag for row in self.tags for tag in row)
            notes.insert(0, f"All words have the same tag, {tag!r}, so that the scores tell little.")
        return notes

    @property
    def constant_score(self) -> ConstantScore:
        """Accuracy of the most frequent tag."""
        return ConstantScore.of_labels((tag for row in self.tags for tag in row), "accuracy of the most frequent tag")


def _of_entities(names: Sequence[str], row: Sequence[str]) -> list[str]:
    """Tags as `find_entities` reads them; a tag may be of the data alone."""
    tags = dict(zip(names, entity_tags(names)))
    return [tags.get(tag, tag) for tag in row]


def _trimmed(text: str, spans: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    return [(*trim_span(text, start, end), label) for start, end, label in spans]
