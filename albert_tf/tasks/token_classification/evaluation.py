"""Scores of predicted tags and entities.

Letters: N texts.
"""

import dataclasses
import re
from collections.abc import Callable, Sequence

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
        expected: for each text, the same of its entities; None for a text of words, whose tags tell them.
        names: the model's tags.
    """

    tags: list[list[str]]
    predictions: list[list[str]]
    spans: list[list[tuple[int, int, str]]]
    expected: list[list[tuple[int, int, str]] | None]
    names: Sequence[str]

    @classmethod
    def of(
        cls, encoded: EncodedTags, tokens: Sequence[Sequence[str]], names: Sequence[str], tag_words: bool = False
    ) -> "TagEvaluation":
        """From the predicted tag of each token; `tag_words` as in TagSettings."""
        tags, predictions, spans, expected, known = [], [], [], [], {}
        of_entities = _entity_tags(names)
        for text, offsets, labels, token_tags in zip(encoded.texts, encoded.spans, encoded.labels, tokens):
            if text.words is None:
                first, units = range(len(offsets)), offsets
                if tag_words:
                    first, units = find_words(text.text, offsets)
                tags.append([names[labels[token]] if labels[token] >= 0 else OUTSIDE for token in first])
                predictions.append([token_tags[token] for token in first])
            else:
                units = list(text.words)
                tags.append([known.setdefault(tag, tag) for tag in text.tags])  # an object for each tag, not word
                first = first_tokens(text, offsets)
                predictions.append(_of_all_words([None if token is None else token_tags[token] for token in first]))
            entities = find_entities(of_entities(predictions[-1]))
            edges = [(int(units[a][0]), int(units[b - 1][1]), label) for label, a, b in entities]
            predicted_spans, true_spans = (
                [(*trim_span(text.text, start, end), label) for start, end, label in each]
                for each in (edges, text.spans)
            )
            spans.append(predicted_spans)
            expected.append(true_spans if text.words is None else None)
        return cls(tags, predictions, spans, expected, names)

    @property
    def scores(self) -> TagScores:
        """Scores of entities and tags; an entity in a text without words is right if its characters are."""
        of_entities = _entity_tags(self.names)
        scores = tag_scores(list(map(of_entities, self.tags)), list(map(of_entities, self.predictions)))
        if all(row is None for row in self.expected):
            return scores
        pairs = [
            (find_entities(of_entities(tags)), find_entities(of_entities(predictions)))
            if expected is None
            else tuple([(label, start, end) for start, end, label in each] for each in (expected, spans))
            for tags, predictions, spans, expected in zip(self.tags, self.predictions, self.spans, self.expected)
        ]
        expected, predicted = zip(*pairs)
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


def _entity_tags(names: Sequence[str]) -> Callable[[Sequence[str]], list[str]]:
    """A function that gives tags as `find_entities` reads them; a tag may be of the data alone."""
    tags = dict(zip(names, entity_tags(names)))
    return lambda row: [tags.get(tag, tag) for tag in row]


def _of_all_words(tags: Sequence[str | None]) -> list[str]:
    """The tags of words, where None stands for one without tokens: it continues the entity around it, if any.

    Example:

    >>> _of_all_words(["B-PER", None, "I-PER", None, "O"])
    ['B-PER', 'I-PER', 'I-PER', 'O', 'O']
    """
    complete = []
    for index, tag in enumerate(tags):
        if tag is None:
            before = complete[-1] if complete else OUTSIDE
            after = next((other for other in tags[index:] if other is not None), OUTSIDE)
            is_inside = [(start, end) for _, start, end in find_entities([before, after])] == [(0, 2)]
            tag = re.sub("^[EL]-", "I-", after) if is_inside else OUTSIDE
        complete.append(tag)
    return complete
