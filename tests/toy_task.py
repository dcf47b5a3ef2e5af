"""A task that a tiny network learns in seconds, and folders of tiny models, for several test packages."""

import functools
import json
import pathlib
import random

import keras

from albert_tf import (
    AlbertConfig,
    AlbertForMultipleChoice,
    AlbertForPreTraining,
    AlbertForQuestionAnswering,
    AlbertForSentenceEmbedding,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
    AlbertTokenizer,
)
from albert_tf.inference.folder import facts_of

# The initialiser is wide, so that untrained models give scores that differ.
CONFIG = AlbertConfig(
    vocab_size=30000,
    embedding_size=16,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=64,
    initializer_range=0.2,
)
PLEASANT, GLOOMY = ("sun", "joy", "garden", "bloom"), ("rain", "grief", "storm", "cold")
_FILLING = ("the", "a", "old", "man", "house", "went", "by", "and", "with", "very")


@functools.cache
def tokenizer() -> AlbertTokenizer:
    """The English vocabulary, made once."""
    return AlbertTokenizer.english()


def write_pretrained(folder: pathlib.Path, seed: int = 1, kind: type = AlbertForPreTraining) -> pathlib.Path:
    """A folder as pretraining leaves it, with random weights."""
    keras.utils.set_random_seed(seed)
    kind(CONFIG).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def write_task(folder: pathlib.Path, kind: str) -> pathlib.Path:
    """A folder as fine-tuning for another task leaves it, with random weights; long texts need several windows."""
    keras.utils.set_random_seed(3)
    tags = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    model = {
        "questions": lambda: AlbertForQuestionAnswering(CONFIG),
        "questions_beam": lambda: AlbertForQuestionAnswering(CONFIG, head="beam"),
        "tags": lambda: AlbertForTokenClassification(CONFIG, labels=tags),
        "choices": lambda: AlbertForMultipleChoice(CONFIG),
        "embedding": lambda: AlbertForSentenceEmbedding(CONFIG, normalize=True),
    }[kind]()
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    lengths = {"max_length": 48, "doc_stride": 16, "max_question_length": 12, "max_answer_length": 10}
    return change_settings(folder, task=facts_of(model)["task"], tag_words=True, **lengths)


def write_classifier(folder: pathlib.Path, pairs: bool = False, **head) -> pathlib.Path:
    """A folder as fine-tuning leaves it, with random weights."""
    keras.utils.set_random_seed(2)
    AlbertForSequenceClassification(CONFIG, **(head or {"labels": ["gloomy", "mixed", "pleasant"]})).save_pretrained(
        folder
    )
    tokenizer().save_pretrained(folder)
    pair_column = "text_pair" if pairs else None
    return change_settings(folder, task="sequence_classification", max_length=48, pair_column=pair_column)


def change_settings(folder: pathlib.Path, **changes) -> pathlib.Path:
    """Changes what fine-tuning records of a model."""
    file = folder / "model.json"
    record = json.loads(file.read_text()) if file.is_file() else {}
    file.write_text(json.dumps({**record, **changes}))
    return folder


def mood_rows(count: int, seed: int) -> list[tuple[str, str]]:
    """Texts with one word that decides their label, among 3 to 20 that do not."""
    chance = random.Random(seed)
    rows = []
    for _ in range(count):
        label = "pleasant" if chance.random() < 0.6 else "gloomy"
        words = [chance.choice(_FILLING) for _ in range(chance.randint(3, 20))]
        words.append(chance.choice(PLEASANT if label == "pleasant" else GLOOMY))
        chance.shuffle(words)
        rows.append((" ".join(words), label))
    return rows


def write_mood_table(path: pathlib.Path, count: int, seed: int) -> pathlib.Path:
    """The rows as TSV with the columns `text` and `label`."""
    lines = ["text\tlabel", *("\t".join(row) for row in mood_rows(count, seed))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
