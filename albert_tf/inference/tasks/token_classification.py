"""Labelled spans of texts, such as named entities.

Letters: B texts, T tokens of a text, W windows, S entities of a text.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from albert_tf.data.finetuning.tagged import OUTSIDE, EncodedTags, TaggedText, encode_tagged, find_words
from albert_tf.inference.network import Computed
from albert_tf.inference.predictions import Entity
from albert_tf.inference.tasks.base import INTEGER, NUMBER, STRING, TensorSpec, TextTask, softmax
from albert_tf.metrics.entities import entity_tags, find_entities
from albert_tf.tokenization.spans import trim_span


class TokenClassification(TextTask):
    """The entities of each text, in order, or its words, if tags are of words; long texts are read in windows.

    If the model was trained on words, its tag for the first token of a word counts: a run of letters and digits, or one
    other character.
    """

    reads_windows = True

    def encode(self, *texts):
        (texts,) = texts
        tagged, options = [TaggedText("", text) for text in texts], self.settings.options("doc_stride")
        return encode_tagged(self.tokenizer, tagged, (OUTSIDE,), self.settings.max_length, **options)

    def decode(self, encoded, computed):
        probabilities = of_tokens(encoded, computed, softmax)
        self.check_labels(probabilities[0])
        labels, tags_words = entity_tags(self.settings.labels), self.settings.tags_words
        return [
            predict_entities(text.text, spans, own, labels, tags_words)
            for text, spans, own in zip(encoded.texts, encoded.spans, probabilities)
        ]

    def arrays(self, predictions):
        shape = (len(predictions), max(map(len, predictions)))  # [B, S]
        fields = dict(zip(self.specs(0), _padding(shape)))
        for row, entities in enumerate(predictions):
            for column, entity in enumerate(entities):
                for array, value in zip(fields.values(), dataclasses.astuple(entity)):
                    array[row, column] = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        return fields

    def specs(self, width):
        shape = (None, None)
        return {
            **dict.fromkeys(("entity_label", "entity_text"), TensorSpec(STRING, shape)),
            **dict.fromkeys(("entity_start", "entity_end"), TensorSpec(INTEGER, shape)),
            "entity_score": TensorSpec(NUMBER, shape),
        }


def _padding(shape: tuple[int, int]) -> Iterable[np.ndarray]:
    """What an entity's fields are where a text has fewer: label, text, start, end and score."""
    yield from (np.full(shape, b"", object) for _ in range(2))
    yield from (np.full(shape, -1, np.int32) for _ in range(2))
    yield np.zeros(shape, np.float32)


def of_tokens(
    encoded: EncodedTags, computed: Iterable[Computed], reduce: Callable[[np.ndarray], np.ndarray]
) -> list[np.ndarray]:
    """What `reduce` makes of the logits of the tokens of each text, [T, ...]; see `EncodedTags.join`."""
    windows: dict[int, np.ndarray] = {}
    for part in computed:
        for row, values in zip(part.rows.tolist(), reduce(part.outputs["logits"])):
            windows[row] = values[1 : 1 + encoded.count[row]]
    return encoded.join([windows[row] for row in range(len(windows))])


def predict_entities(
    text: str, spans: np.ndarray, probabilities: np.ndarray, names: Sequence[str], tag_words: bool
) -> list[Entity]:
    """The entities of a text, in order.

    Args:
        text: the text.
        spans: start and exclusive end of its tokens in characters, int [T, 2].
        probabilities: of the tags of each token, float [T, tags].
        names: the tags, see `entity_tags`.
        tag_words: whether words are tagged, not tokens, each by its first token; see `find_words`.
    """
    if tag_words:
        first, spans = find_words(text, spans)
        probabilities = probabilities[first]
    best, entities = probabilities.max(axis=-1), []
    for label, first, last in find_entities([names[int(index)] for index in np.argmax(probabilities, axis=-1)]):
        start, end = trim_span(text, int(spans[first, 0]), int(spans[last - 1, 1]))
        entities.append(Entity(label, text[start:end], start, end, float(best[first:last].mean())))
    return entities
