"""Scores of tagged words: precision, recall and F1 of entities, as CoNLL's script and `seqeval` count them."""

import collections
import dataclasses
from collections.abc import Iterable, Sequence

from albert_tf.metrics.labels import LabelScores

_Entity = tuple[str, int, int]  # label, start, exclusive end


@dataclasses.dataclass(frozen=True)
class TagScores:
    """Scores of predicted tags.

    Args:
        f1, precision, recall: float. Of entities: a predicted one is right if its label, start and end are; 0 if there
            are none.
        accuracy: float. Fraction of correct tags.
        by_label: scores of the entities of each label.
    """

    f1: float
    precision: float
    recall: float
    accuracy: float
    by_label: dict[str, LabelScores] = dataclasses.field(default_factory=dict)


def tag_scores(tags: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]) -> TagScores:
    """Scores predicted tags.

    Args:
        tags: for each text, the tag of each word: "O", or a prefix (B, I, E, S, L, U), "-" and a label.
        predictions: of the same lengths.

    Raises:
        ValueError: there are no tags, or lengths differ.

    Example:

    >>> tag_scores([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "I-PER", "O", "O"]]).f1
    0.6666666666666666

    References: conlleval of the CoNLL-2000 shared task; chakki-works/seqeval.
    """
    if [len(row) for row in tags] != [len(row) for row in predictions] or not any(len(row) for row in tags):
        raise ValueError("`tags` and `predictions` must have the same lengths, with at least one tag.")
    pairs = [pair for row, other in zip(tags, predictions) for pair in zip(row, other)]
    accuracy = sum(tag == prediction for tag, prediction in pairs) / len(pairs)
    entities, predicted = ([find_entities(row) for row in rows] for rows in (tags, predictions))
    return entity_scores(entities, predicted, accuracy)


def entity_scores(
    entities: Sequence[Sequence[_Entity]], predictions: Sequence[Sequence[_Entity]], accuracy: float
) -> TagScores:
    """Scores of the entities of texts, each a label with start and end; `accuracy` is that of the tags."""
    expected, predicted = (
        {(label, number, start, end) for number, row in enumerate(rows) for label, start, end in row}
        for rows in (entities, predictions)
    )
    right, counts, labelled = (
        collections.Counter(entity[0] for entity in each) for each in (expected & predicted, predicted, expected)
    )
    by_label = {
        label: LabelScores.of(right[label], counts[label], labelled[label]) for label in sorted({*counts, *labelled})
    }
    whole = LabelScores.of(right.total(), counts.total(), labelled.total())
    return TagScores(whole.f1 or 0.0, whole.precision or 0.0, whole.recall or 0.0, accuracy, by_label)


def find_entities(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """The entities in the tags of a text: label, first word, exclusive last word.

    Example:

    >>> find_entities(["B-PER", "I-PER", "I-LOC", "O", "S-LOC"])
    [('PER', 0, 2), ('LOC', 2, 3), ('LOC', 4, 5)]
    """
    entities, start, current, previous = [], 0, "", ""
    for index, tag in enumerate([*tags, "O"]):
        prefix, label = split_tag(tag)
        if not (current and label == current and prefix in ("I", "E") and previous not in ("E", "S")):
            if current:
                entities.append((current, start, index))
            start, current = index, label
        previous = prefix
    return entities


def entity_tags(names: Sequence[str]) -> list[str]:
    """The tags of a model as `find_entities` reads them: labels alone, without "O" among them, are of single words.

    Example:

    >>> entity_tags(["NOUN", "VERB"]), entity_tags(["O", "PER"]), entity_tags(["O", "B-PER"])
    (['S-NOUN', 'S-VERB'], ['O', 'PER'], ['O', 'B-PER'])
    """
    return [f"S-{name}" for name in names] if are_of_words(names) else list(names)


def are_of_words(names: Iterable[str]) -> bool:
    """Whether tags are of single words, as parts of speech are: labels alone, without "O" among them."""
    return all(split_tag(name) == ("I", name) for name in names)


def split_tag(tag: str) -> tuple[str, str]:
    """Prefix and label of a tag; neighbours with a label without prefix are one entity, but see `entity_tags`.

    Example:

    >>> split_tag("B-PER"), split_tag("U-PER"), split_tag("PER"), split_tag("B"), split_tag("O")
    (('B', 'PER'), ('S', 'PER'), ('I', 'PER'), ('B', '_'), ('', ''))
    """
    prefix, _, label = tag.partition("-")
    if tag in ("O", ""):
        return "", ""
    if prefix not in ("B", "I", "E", "S", "L", "U"):
        return "I", tag
    return {"L": "E", "U": "S"}.get(prefix, prefix), label or "_"  # the letters of BILOU
