"""How a model makes its inputs of texts: a tokenizer and a length."""

import functools
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from albert_tf.data.finetuning.encoded import EncodedTexts, encode_texts
from albert_tf.files.json import optional_json
from albert_tf.files.urls import location
from albert_tf.tokenization.files import vocabulary_of

if TYPE_CHECKING:
    from albert_tf.tokenization import AlbertTokenizer

# Where `finetune` writes the settings of a model, and where earlier versions did.
_SETTINGS_FILES = ("model.json", "recipe.json")


class Preprocessor:
    """How a model makes its inputs of texts: its attribute `preprocessor`.

    Args:
        tokenizer: AlbertTokenizer; or the path of one, which is loaded when it is first needed.
        max_length: int. Maximum number of ids of a text or pair. None: the model's `max_length` if it has one, else as
            many as it has positions.

    Example:

    >>> import albert_tf
    >>> tokenizer = albert_tf.AlbertTokenizer.english()
    >>> config = albert_tf.AlbertConfig.from_preset("tiny").replace(vocab_size=len(tokenizer))
    >>> model = albert_tf.AlbertForSequenceClassification(config, labels=["bad", "good"])
    >>> model.preprocessor = albert_tf.Preprocessor(tokenizer, max_length=128)
    >>> model.predict(["A fine film.", "A waste of time."], verbose=0)["logits"].shape
    (2, 2)
    """

    def __init__(self, tokenizer: "AlbertTokenizer | str | pathlib.Path", max_length: int | None = None):
        self._source, self.max_length = tokenizer, max_length

    @classmethod
    def beside(cls, checkpoint: pathlib.Path) -> "Preprocessor | None":
        """That of a checkpoint, with the `max_length` of its fine-tuning; None for a file, or without a vocabulary."""
        file = None if checkpoint.is_file() else vocabulary_of(checkpoint)
        if file is None:
            return None
        folder = checkpoint if checkpoint.is_dir() else checkpoint.parent
        cure = "restore it, or remove it to use the defaults"
        settings = [optional_json(folder / name, cure) for name in _SETTINGS_FILES]
        return cls(file, next((record["max_length"] for record in settings if record.get("max_length")), None))

    @functools.cached_property
    def tokenizer(self) -> "AlbertTokenizer":
        """What makes ids of texts."""
        if not isinstance(self._source, str | pathlib.Path):
            return self._source
        from albert_tf.tokenization import AlbertTokenizer

        return AlbertTokenizer.from_pretrained(self._source)

    def save(self, folder: str | pathlib.Path, vocab_size: int) -> None:
        """Writes the tokenizer if it fits a model, and if the folder has no vocabulary, which may be another one."""
        if vocabulary_of(location(folder)) is None and len(self.tokenizer) == vocab_size:
            self.tokenizer.save_pretrained(folder)

    def encode(self, model: Any, columns: Sequence[list[Any]]) -> EncodedTexts:
        """Tokenizes N texts, or texts and their pairs, for a model; warns of those that are cut or empty."""
        self.tokenizer.check_fits(model.config.vocab_size)
        positions, length = model.config.max_position_embeddings, self.max_length
        if length is None:
            length = getattr(model, "max_length", positions)
        if type(length) is not int or not 3 <= length <= positions:
            raise ValueError(
                f"`max_length` of a Preprocessor must be an integer from 3 to max_position_embeddings={positions}. "
                f"Received: max_length={length!r}."
            )
        if len(columns) > model.max_columns or len({len(column) for column in columns}) > 1:
            wanted = (
                "one list of texts" if model.max_columns == 1 else "a list of texts, or (texts, pairs) of one length"
            )
            received = " and ".join(f"{len(column)} texts" for column in columns)
            raise ValueError(f"{type(model).__name__} takes {wanted}. Received: {received}; pass them in that form.")
        return encode_texts(self.tokenizer, columns[0], columns[1] if len(columns) > 1 else None, length)
