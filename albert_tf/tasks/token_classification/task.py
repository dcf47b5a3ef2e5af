"""Tags of words and labelled spans of texts, such as named entities.

Letters: B texts, T tokens of a text, S entities of a text.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from albert_tf.data.finetuning.tables import listed
from albert_tf.files.atomic import atomic_open
from albert_tf.metrics.entities import are_of_words, entity_tags, find_entities
from albert_tf.tasks.learned import LearnedTask
from albert_tf.tasks.outputs import INTEGER, NUMBER, STRING, Computed, TensorSpec, check_labels, padded_bytes, softmax
from albert_tf.tasks.predictions import Entity
from albert_tf.tasks.token_classification.evaluation import TagEvaluation
from albert_tf.tasks.token_classification.files import read_tagged
from albert_tf.tasks.token_classification.settings import TagSettings
from albert_tf.tasks.token_classification.tagged import (
    OUTSIDE,
    TAG,
    EncodedTags,
    TaggedText,
    encode_tagged,
    find_words,
    tag_names,
)
from albert_tf.tokenization.spans import trim_span

_NO_ENTITY = Entity("", "", -1, -1, 0.0)  # where a text has fewer than others


class TokenClassification(LearnedTask[TagSettings]):
    """The entities of each text, in order, or its words, if tags are of words; long texts are read in windows.

    If the model was trained on words, its tag for the first token of a word counts: a run of letters and digits, or one
    other character.
    """

    settings_class = TagSettings
    reads_windows = True
    predictions_file = "dev_predictions.jsonl"

    @property
    def labels(self) -> tuple[str, ...]:
        """The tags in order of their ids."""
        return self.settings.labels or ()

    def encode(self, *texts):
        (texts,) = texts
        return self._encode([TaggedText("", text) for text in texts], (OUTSIDE,))

    def rows(self, data: Sequence[TaggedText]) -> EncodedTags:
        return self._encode(data, self.labels)

    def _encode(self, data: Sequence[TaggedText], names: Sequence[str]) -> EncodedTags:
        return encode_tagged(self.tokenizer, data, names, self.max_length, self.settings.doc_stride)

    def decode(self, encoded, computed):
        probabilities = of_tokens(encoded, computed, softmax)
        check_labels(self.labels, probabilities[0])
        names, tags_words = entity_tags(self.labels), bool(self.settings.tag_words)
        return [
            predict_entities(text.text, spans, values, names, tags_words)
            for text, spans, values in zip(encoded.texts, encoded.spans, probabilities)
        ]

    def arrays(self, predictions):
        most = max(map(len, predictions))
        rows = [[*entities, *[_NO_ENTITY] * (most - len(entities))] for entities in predictions]  # [B, S]

        def field(name: str) -> list[list[Any]]:
            return [[getattr(entity, name) for entity in row] for row in rows]

        return {
            **{f"entity_{name}": padded_bytes(field(name)) for name in ("label", "text")},
            **{f"entity_{name}": np.array(field(name), np.int32) for name in ("start", "end")},
            "entity_score": np.array(field("score"), np.float32),
        }

    def specs(self, width):
        shape = (None, None)
        return {
            **dict.fromkeys(("entity_label", "entity_text"), TensorSpec(STRING, shape)),
            **dict.fromkeys(("entity_start", "entity_end"), TensorSpec(INTEGER, shape)),
            "entity_score": TensorSpec(NUMBER, shape),
        }

    @property
    def main_score(self) -> str:
        """F1 of entities, or accuracy if tags are of words."""
        return "accuracy" if self.labels and are_of_words(self.labels) else "f1"

    def read(self, path):
        return read_tagged(path, True, self.settings.table, self.settings.labels)

    def read_unlabelled(self, path):
        return read_tagged(path, False, self.settings.table)

    def keys(self, data):
        return (text.text for text in data)

    def model_arguments(self, train):
        names = self.settings.labels or tag_names(train)
        alone = [name for name in names if not TAG.fullmatch(name)]
        if alone and not are_of_words(names):
            raise ValueError(
                "Tags must all be O, or B-, I-, E- or S- and a label, to tell entities; or all be labels alone, such "
                f"as parts of speech. Received: {alone[0]!r} among {listed(names)}."
            )
        if len(names) < 2:
            raise ValueError(f"The training texts have no tags but {listed(names)}; check the training file.")
        return {"labels": names}

    def learnt_settings(self, train):
        tag_words = self.settings.tag_words
        return {"tag_words": all(text.words is not None for text in train) if tag_words is None else tag_words}

    def evaluator(self, compute, data):
        encoded = self.rows(data)

        def evaluate() -> TagEvaluation:
            computed = compute(encoded, shows_progress=True)
            tokens = of_tokens(encoded, computed, lambda logits: logits.argmax(axis=-1))
            tags = [[self.labels[index] for index in row] for row in tokens]
            return TagEvaluation.of(encoded, tags, self.labels, bool(self.settings.tag_words))

        return evaluate

    def write_predictions(self, path, data, evaluation):
        """Writes JSON lines with `text`, and the labelled `spans` and their text; with words also their `tags`."""
        with atomic_open(path) as file:
            for text, tags, spans in zip(data, evaluation.predictions, evaluation.spans):
                entities = [{"start": a, "end": b, "label": label, "text": text.text[a:b]} for a, b, label in spans]
                line: dict[str, Any] = {"text": text.text, "spans": entities}
                line |= {"tags": tags} if text.words is not None else {}
                file.write((json.dumps(line, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))


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
