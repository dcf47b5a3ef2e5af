"""How a model makes its inputs of texts: a tokenizer, a length, and what becomes of longer texts."""

import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from albert_tf.data.finetuning.encoded import EncodedTexts, encode_texts
from albert_tf.tasks.table import WindowsName

if TYPE_CHECKING:
    from albert_tf.tokenization import AlbertTokenizer


class Preprocessor:
    """How a model makes its inputs of texts: its attribute `preprocessor`.

    Args:
        tokenizer: AlbertTokenizer; or the path of one, which is loaded when it is first needed.
        max_length: int. Maximum number of ids of a text or pair. None: the model's `max_length` if it has one, else as
            many as it has positions.
        windows: for labels and numbers of single texts, `predict` reads longer ones in overlapping windows, and joins
            the logits of these by their `"mean"` or `"max"`. None: the ends of longer texts are left out.
        doc_stride: int. Distance in tokens of the starts of two windows. None: 128, or a third of `max_length` if that
            is less.

    Raises:
        ValueError: `windows` or `doc_stride` is invalid.

    Example:

    >>> import albert_tf
    >>> tokenizer = albert_tf.AlbertTokenizer.english()
    >>> config = albert_tf.AlbertConfig.from_preset("tiny").replace(vocab_size=len(tokenizer))
    >>> model = albert_tf.AlbertForSequenceClassification(config, labels=["bad", "good"])
    >>> model.preprocessor = albert_tf.Preprocessor(tokenizer, max_length=128)
    >>> model.predict(["A fine film.", "A waste of time."], verbose=0)["logits"].shape
    (2, 2)
    """

    def __init__(
        self,
        tokenizer: "AlbertTokenizer | str | pathlib.Path",
        max_length: int | None = None,
        windows: WindowsName | None = None,
        doc_stride: int | None = None,
    ):
        if windows not in (None, *get_args(WindowsName)):
            raise ValueError(f"`windows` must be 'mean', 'max' or None. Received: windows={windows!r}.")
        if doc_stride is not None and (windows is None or type(doc_stride) is not int or doc_stride < 1):
            raise ValueError(
                "`doc_stride` must be an integer of at least 1, and None without `windows`. Received: "
                f"doc_stride={doc_stride!r}, windows={windows!r}."
            )
        self._source, self.max_length, self.windows, self.doc_stride = tokenizer, max_length, windows, doc_stride

    @classmethod
    def beside(cls, checkpoint: pathlib.Path, settings: Mapping[str, Any]) -> "Preprocessor | None":
        """That of a checkpoint and the settings of its model; None for a file, or without a vocabulary."""
        from albert_tf.tokenization.files import vocabulary_of

        file = None if checkpoint.is_file() else vocabulary_of(checkpoint)
        return None if file is None else cls(file, **settings)

    @functools.cached_property
    def tokenizer(self) -> "AlbertTokenizer":
        """What makes ids of texts."""
        if not isinstance(self._source, str | pathlib.Path):
            return self._source
        from albert_tf.tokenization import AlbertTokenizer

        return AlbertTokenizer.from_pretrained(self._source)

    def save(self, folder: str | pathlib.Path, vocab_size: int) -> None:
        """Writes the tokenizer if it fits a model, and if the folder has no vocabulary, which may be another one."""
        from albert_tf.files.urls import location
        from albert_tf.tokenization.files import vocabulary_of

        if vocabulary_of(location(folder)) is None and len(self.tokenizer) == vocab_size:
            self.tokenizer.save_pretrained(folder)

    def check(self, model: Any, takes_pairs: bool = False) -> int:
        """The maximum number of ids of a model's texts; raises ValueError if it cannot read them as this says."""
        positions, length = model.config.max_position_embeddings, self.max_length
        if length is None:
            length = getattr(model, "max_length", positions)
        if type(length) is not int or not 3 <= length <= positions:
            raise ValueError(
                f"`max_length` of a Preprocessor must be an integer from 3 to max_position_embeddings={positions}. "
                f"Received: max_length={length!r}."
            )
        if self.windows is not None and (takes_pairs or not model.reads_windows):
            raise ValueError(
                f"`windows` of a Preprocessor must be None unless single texts get labels or numbers. Received: "
                f"windows={self.windows!r} for {'pairs of texts' if takes_pairs else type(model).__name__}."
            )
        return length

    def encode(self, model: Any, columns: Sequence[list[Any]]) -> EncodedTexts:
        """Tokenizes N texts, or texts and their pairs, for a model; warns of those that are cut or empty."""
        self.tokenizer.check_fits(model.config.vocab_size)
        length = self.check(model, takes_pairs=len(columns) > 1)
        if len(columns) > model.max_columns or len({len(column) for column in columns}) > 1:
            wanted = (
                "one list of texts" if model.max_columns == 1 else "a list of texts, or (texts, pairs) of one length"
            )
            received = " and ".join(f"{len(column)} texts" for column in columns)
            raise ValueError(f"{type(model).__name__} takes {wanted}. Received: {received}; pass them in that form.")
        pairs = columns[1] if len(columns) > 1 else None
        options = {"windows": self.windows is not None, "doc_stride": self.doc_stride}
        return encode_texts(self.tokenizer, columns[0], pairs, length, **options)
