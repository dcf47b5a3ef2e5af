"""`AlbertTokenizer`: raw text to the model's inputs, over a piece model of either kind.

B batch, L sequence, V vocabulary.
"""

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from albert_tf.tokenization.batching import BatchLayout, SpecialIds, build_inputs, kept_lengths, place_rows
from albert_tf.tokenization.folders import english_model_file, find_vocabulary
from albert_tf.tokenization.loading import load_piece_model
from albert_tf.tokenization.piece_model import PieceModel
from albert_tf.tokenization.segmented_model import with_recorded_segmenter

if TYPE_CHECKING:
    from albert_tf.tokenization.graph import TokenizerLayer


class AlbertTokenizer:
    """Turns text into the ids that an ALBERT model was trained on, and back.

    `as_layer` gives the same ids inside a TensorFlow graph. Text never yields a special id: a literal "[MASK]" stays
    plain text.

    Args:
        model: what turns text into pieces; `from_pretrained` makes it.

    Call arguments:
        texts: the texts of a batch; one text counts as a batch of one.
        pairs: second texts, as many as `texts`, or None.
        max_length: the most ids in a row, special ones included.
        padding: "longest" or "max_length".
        truncation: shorten what does not fit, of a pair the longer text first, id by id from its end, the second text
            where both are equally long. Otherwise it is an error.
        return_offsets: also return where in its text each id comes from.

    Returns:
        A dict of int32 arrays [B, L]: `input_ids` ([CLS] text [SEP], or [CLS] text [SEP] pair [SEP]), `attention_mask`
        (1 on all ids but padding) and `token_type_ids` (1 on the pair and its [SEP]). With `return_offsets` also
        `offsets` [B, L, 2]: start and exclusive end in characters of the original text, 0 and 0 for special ids and
        padding.

    Example:

    >>> tokenizer = AlbertTokenizer.english()
    >>> tokenizer.tokenize("The Café, 1999, says: [MASK]")
    ['▁the', '▁cafe', ',', '▁1999', ',', '▁says', ':', '▁[', 'mask', ']']
    >>> tokenizer(["Hello world"], ["Bye"])["input_ids"].tolist()
    [[2, 10975, 126, 3, 34, 62, 3]]

    References:
        google-research/albert, tokenization.py.
    """

    def __init__(self, model: PieceModel):
        self._model = model

    @classmethod
    def from_pretrained(
        cls,
        path: str | Path,
        do_lower_case: bool | None = None,
        keep_accents: bool | None = None,
        reference_digit_comma: bool | None = None,
        *,
        scheme: str | None = None,
        reference_accents: bool | None = None,
        bare_final: bool | None = None,
    ) -> "AlbertTokenizer":
        """Loads a tokenizer.

        Args:
            path: a SentencePiece file, a vocabulary file (`*.txt`, one piece a line), or a folder with `spiece.model`,
                `30k-clean.model`, `vocab.txt`, or else a single `*.model` or `*vocab*.txt`.
            do_lower_case: lower-case the text. None takes what the folder's `tokenizer_config.json` says, else True.
            keep_accents: neither decompose characters nor drop combining marks. None as above, else False; of a
                vocabulary file, where capital letters are kept or words' ends are marked, True.
            reference_digit_comma: split pieces that end in digit + comma exactly as Google's code does under Python 3,
                which leaves a stray word start behind. None as above, else False. SentencePiece only, as the
                following three are for vocabulary files only.
            scheme: "wordpiece", where a piece inside a word begins with "##", or "word_end", where a piece at the end
                of a word ends with "_". None as above, else what the pieces look like.
            reference_accents: leave characters apart from which accents were dropped, as the reference does; Hangul
                comes apart, too. None as above, else False.
            bare_final: "word_end" without the mark behind the last word of a text. None as above, else False.

        Returns:
            The tokenizer.

        Raises:
            ValueError: if there is no such file, or it is no ALBERT vocabulary.
        """
        file = find_vocabulary(path)
        model = load_piece_model(
            file,
            do_lower_case=do_lower_case,
            keep_accents=keep_accents,
            reference_digit_comma=reference_digit_comma,
            scheme=scheme,
            reference_accents=reference_accents,
            bare_final=bare_final,
        )
        return cls(with_recorded_segmenter(model, file.parent))

    @classmethod
    def english(
        cls, do_lower_case: bool = True, keep_accents: bool = False, reference_digit_comma: bool = False
    ) -> "AlbertTokenizer":
        """Loads the published vocabulary of Google's English models (30,000 pieces), which ships with the package."""
        return cls.from_pretrained(english_model_file(), do_lower_case, keep_accents, reference_digit_comma)

    def save_pretrained(self, folder: str | Path) -> None:
        """Writes the vocabulary and `tokenizer_config.json` as Hugging Face's tokenizers read them.

        SentencePiece goes to `spiece.model`, unchanged, for AlbertTokenizer; a vocabulary file to `vocab.txt`, for
        BertTokenizer. The scheme "word_end" is unknown there.

        Args:
            folder: where to; made if it is not there.
        """
        self._model.save(folder)

    @property
    def options(self) -> Any:
        """What is done to the text around the vocabulary."""
        return self._model.options

    @property
    def vocab_size(self) -> int:
        """The number of pieces, V."""
        return len(self._model.pieces)

    @property
    def pieces(self) -> tuple[str, ...]:
        """The pieces in order of their ids."""
        return self._model.pieces

    @property
    def pad_token_id(self) -> int:
        """The id that fills rows up."""
        return self._model.special.pad

    @property
    def unk_token_id(self) -> int:
        """The id of text that no piece covers."""
        return self._model.special.unk

    @property
    def cls_token_id(self) -> int:
        """The id in front of every row."""
        return self._model.special.cls

    @property
    def sep_token_id(self) -> int:
        """The id behind each text of a row."""
        return self._model.special.sep

    @property
    def mask_token_id(self) -> int:
        """The id that hides another one in pretraining."""
        return self._model.special.mask

    @functools.cached_property
    def start_of_word(self) -> np.ndarray:
        """bool [V], whether each piece begins a word, as whole-word masking wants to know it."""
        return self._model.find_word_starts()

    @functools.cached_property
    def vocab_hash(self) -> str:
        """A hash of vocabulary and options: equal where every text gives equal ids."""
        return self._model.hash_vocabulary()

    def check_fits(self, vocab_size: int) -> None:
        """Raises a ValueError unless a model of `vocab_size` has one embedding for each piece."""
        if vocab_size != self.vocab_size:
            raise ValueError(
                f"The model's `vocab_size` must be that of its vocabulary. Received: vocab_size={vocab_size}, "
                f"a vocabulary of {self.vocab_size} pieces in {self._model.source}; take the one the "
                "model was made with."
            )

    def tokenize(self, text: str | bytes) -> list[str]:
        """Splits a text into pieces; what no piece covers appears as it is after the clean-up."""
        return self._model.tokenize(text)

    def encode(self, text: str | bytes) -> list[int]:
        """Returns a text's ids, without special ones.

        Args:
            text: any text. UTF-8 bytes are taken too; invalid ones, and lone surrogates of a string, become the unknown
                id.

        Returns:
            The ids.
        """
        return self.encode_batch([text], num_threads=1)[0].tolist()

    def encode_batch(self, texts: Iterable[str | bytes], num_threads: int | None = None) -> list[np.ndarray]:
        """Returns the ids of many texts, without special ones: the fast path.

        Args:
            texts: the texts.
            num_threads: how many threads to use, by default one per core.

        Returns:
            One int32 array per text. The arrays may be read-only views of one buffer.
        """
        if isinstance(texts, str | bytes):
            raise ValueError(
                f"`texts` must be several texts. Received: one {type(texts).__name__}; use `encode` for it."
            )
        return self._model.encode_batch(list(texts), num_threads)

    def decode(self, ids: Iterable[int]) -> str:
        """Joins ids to a text, leaving special ones out; an unknown piece shows as " ⁇ "."""
        ids = [int(index) for index in ids]
        wrong = [index for index in ids if not 0 <= index < self.vocab_size]
        if wrong:
            raise ValueError(f"`ids` must lie between 0 and {self.vocab_size - 1}. Received: {wrong[0]}.")
        return self._model.decode(ids)

    def __call__(
        self,
        texts: str | Sequence[str],
        pairs: str | Sequence[str] | None = None,
        max_length: int = 512,
        padding: str = "longest",
        truncation: bool = True,
        return_offsets: bool = False,
    ) -> dict[str, np.ndarray]:
        layout = BatchLayout(max_length, padding, truncation)
        texts, pairs = _as_batch(texts), None if pairs is None else _as_batch(pairs)
        if pairs is not None and len(pairs) != len(texts):
            raise ValueError(
                f"`pairs` must be as many as `texts`. Received: {len(texts)} texts and {len(pairs)} pairs."
            )
        if return_offsets:
            return self._inputs_with_offsets(texts, pairs, layout)
        rows, seconds = self.encode_batch(texts), None if pairs is None else self.encode_batch(pairs)
        return build_inputs(rows, seconds, self._around, layout)

    def as_layer(self, max_length: int = 512, padding: str = "longest") -> "TokenizerLayer":
        """Returns a Keras layer that does the same inside a TensorFlow graph, for `tf.data` and for serving raw text.

        Args:
            max_length: the most ids in a row, special ones included; longer rows are cut as in `__call__`.
            padding: "longest" or "max_length".

        Returns:
            A layer: tf.string [B], or two of them, in; a dict of int32 [B, L] as from `__call__` out.
        """
        # TensorFlow is loaded only where the graph is asked for: everything else here runs without it.
        from albert_tf.tokenization.graph import TokenizerLayer

        return TokenizerLayer(self._model.in_graph(), self._around, BatchLayout(max_length, padding))

    def __reduce__(self):
        return AlbertTokenizer, (self._model,)

    @property
    def _around(self) -> SpecialIds:
        return SpecialIds(self._model.special.pad, self._model.special.cls, self._model.special.sep)

    def _inputs_with_offsets(
        self, texts: list[str], pairs: list[str] | None, layout: BatchLayout
    ) -> dict[str, np.ndarray]:
        first = [self._model.encode_with_offsets(text) for text in texts]
        second = None if pairs is None else [self._model.encode_with_offsets(text) for text in pairs]
        rows, seconds = [one.ids for one in first], None if second is None else [one.ids for one in second]
        inputs = build_inputs(rows, seconds, self._around, layout)
        offsets = np.zeros((*inputs["input_ids"].shape, 2), np.int32)  # [B, L, 2]
        spans, second_spans = (
            [one.offsets for one in first],
            None if second is None else [one.offsets for one in second],
        )
        place_rows(offsets, spans, second_spans, *kept_lengths(rows, seconds, layout))
        return inputs | {"offsets": offsets}


def _as_batch(texts: str | Sequence[str]) -> list[str]:
    return [texts] if isinstance(texts, str | bytes) else list(texts)
