"""`AlbertTokenizer`: raw text to the model's inputs, over a piece model of either kind.

B batch, L sequence, V vocabulary.
"""

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from albert_tf.tokenization.batching import BatchLayout, SpecialIds, TokenRows, build_inputs
from albert_tf.tokenization.files import english_model_file, find_vocabulary
from albert_tf.tokenization.interface import PieceModel, raise_not_text
from albert_tf.tokenization.loading import load_piece_model
from albert_tf.tokenization.special_tokens import SplitAtSpecialTokens

if TYPE_CHECKING:
    from albert_tf.tokenization.layer import TokenizerLayer


class AlbertTokenizer:
    """Turns text into the ids that an ALBERT model was trained on, and back.

    `as_layer` gives the same ids inside a TensorFlow graph, and says so where it cannot. Text yields no special id
    unless that is asked for: a literal "[MASK]" stays plain text.

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
        pad_to_multiple_of: with padding "longest", pad on to a multiple of this number.
        doc_stride: spread texts that do not fit over several rows instead of shortening them: windows on the text, each
            of which begins so many ids after the beginning of the one before, as the reference's doc_stride. (Hugging
            Face's `stride` is how many ids two windows share: `max_length` - 2 - `doc_stride` of a single text.) Of a
            pair the second text is spread, and all of the first is in every row.
        allow_special: a literal "[MASK]", "[CLS]", "[SEP]", "<pad>" or "<unk>" in a text stands for its id, and takes
            the white space in front of it along. By default it is plain text ("<unk>" always is with byte fallback).

    Returns:
        A dict of int32 arrays [B, L]: `input_ids` ([CLS] text [SEP], or [CLS] text [SEP] pair [SEP]), `attention_mask`
        (1 on all ids but padding) and `token_type_ids` (1 on the pair and its [SEP]). With `return_offsets` also
        `offsets` [B, L, 2]: start and exclusive end in characters of the original text, or in bytes where it is given
        as bytes, 0 and 0 for [CLS], [SEP] and padding. With `doc_stride` there are as many rows as there are windows,
        at least one for each text, and also `overflow_to_sample_mapping` [rows]: which text each is about.

    Example:

    >>> tokenizer = AlbertTokenizer.english()
    >>> tokenizer.tokenize("The Café, 1999, says: [MASK]")
    ['▁the', '▁cafe', ',', '▁1999', ',', '▁says', ':', '▁[', 'mask', ']']
    >>> tokenizer(["Hello world"], ["Bye"])["input_ids"].tolist()
    [[2, 10975, 126, 3, 34, 62, 3]]
    >>> tokenizer("one two three four five", max_length=5, doc_stride=2)["input_ids"].tolist()
    [[2, 53, 81, 132, 3], [2, 132, 222, 355, 3]]

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
            path: a SentencePiece file, a vocabulary file (`*.txt`, one piece a line), a `tokenizer.json`, or a folder
                with `spiece.model`, `30k-clean.model`, `vocab.txt`, else a single `*.model` or `*vocab*.txt`, else
                `tokenizer.json` alone, as transformers 5 saves it.
            do_lower_case: lower-case the text. None takes what the folder's `tokenizer_config.json` says, else True.
            keep_accents: neither decompose characters nor drop combining marks. None as above, else False; of a
                vocabulary file, where capital letters are kept or words' ends are marked, True.
            reference_digit_comma: split pieces that end in digit + comma exactly as Google's code does under Python 3,
                which leaves a stray word start. None as above, else False. SentencePiece only, as the
                following three are for vocabulary files only.
            scheme: "wordpiece", where a piece inside a word begins with "##", or "word_end", where a piece at the end
                of a word ends with "_". None as above, else what the pieces look like.
            reference_accents: leave characters apart from which accents were dropped, as the reference does; Hangul
                comes apart, too, and stays so where it is written in conjoining letters. None as above, else
                False.
            bare_final: "word_end" without the mark after the last word of a text. None as above, else False.

        Raises:
            ValueError: if there is no such file, or it is no ALBERT vocabulary.
        """
        model = load_piece_model(
            find_vocabulary(path),
            do_lower_case=do_lower_case,
            keep_accents=keep_accents,
            reference_digit_comma=reference_digit_comma,
            scheme=scheme,
            reference_accents=reference_accents,
            bare_final=bare_final,
        )
        return cls(model)

    @classmethod
    def english(
        cls, do_lower_case: bool = True, keep_accents: bool = False, reference_digit_comma: bool = False
    ) -> "AlbertTokenizer":
        """Loads the published vocabulary of Google's English models (30,000 pieces), which ships with the package."""
        return cls.from_pretrained(english_model_file(), do_lower_case, keep_accents, reference_digit_comma)

    def save_pretrained(self, folder: str | Path) -> None:
        """Writes the vocabulary and `tokenizer_config.json` as Hugging Face's tokenizers read them.

        SentencePiece goes to `spiece.model`, unchanged, and the complete tokenizer to `tokenizer.json`, for
        AlbertTokenizer; a vocabulary file to `vocab.txt`, for BertTokenizer (which takes Hangul apart where accents are
        dropped, and never puts it together). Where other ids would come there, no `tokenizer_class` is written: with
        the scheme "word_end", a segmenter, BPE, byte fallback or user-defined symbols that the clean-up would change.

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
        """The id after each text of a row."""
        return self._model.special.sep

    @property
    def mask_token_id(self) -> int:
        """The id that hides another one in pretraining."""
        return self._model.special.mask

    @functools.cached_property
    def start_of_word(self) -> np.ndarray:
        """bool [V], whether each piece begins a word, as whole-word masking needs it."""
        return self._model.find_word_starts()

    @functools.cached_property
    def end_of_word(self) -> np.ndarray:
        """bool [V], whether a word begins after each piece, whatever comes: where pieces mark the ends of words."""
        return self._model.find_word_ends()

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
                f"model was made with, or give a new model vocab_size={self.vocab_size}."
            )

    def tokenize(self, text: str | bytes) -> list[str]:
        """Splits a text into pieces; what no piece covers appears cleaned, or as [UNK] where the word was lost."""
        return self._model.tokenize(text)

    def encode(self, text: str | bytes, *, allow_special: bool = False) -> list[int]:
        """Returns a text's ids, without [CLS] and [SEP] around it.

        UTF-8 bytes are taken too; invalid ones, and lone surrogates of a string, become the unknown id. `allow_special`
        is that of a call.
        """
        return self.encode_batch([text], num_threads=1, allow_special=allow_special)[0].tolist()

    def encode_batch(
        self, texts: Iterable[str | bytes], num_threads: int | None = None, *, allow_special: bool = False
    ) -> list[np.ndarray]:
        """Returns the ids of many texts, without [CLS] and [SEP] around them: the fast path.

        Args:
            texts: the texts.
            num_threads: how many threads to use, by default one per core; a vocabulary file always uses one.
            allow_special: as in a call.

        Returns:
            One int32 array per text, which may be a read-only view of a buffer.
        """
        if isinstance(texts, str | bytes):
            raise ValueError(
                f"`texts` must be several texts. Received: one {type(texts).__name__}; use `encode` for it."
            )
        return self._choose_model(allow_special).encode_batch(list(texts), num_threads)

    def decode(self, ids: Iterable[int]) -> str:
        """Joins ids to a text, leaving special ones out; an unknown piece shows as " ⁇ ", or as "[UNK]"."""
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
        *,
        pad_to_multiple_of: int | None = None,
        doc_stride: int | None = None,
        allow_special: bool = False,
    ) -> dict[str, np.ndarray]:
        layout = BatchLayout(max_length, padding, truncation, pad_to_multiple_of, doc_stride)
        texts, pairs = _as_batch(texts), None if pairs is None else _as_batch(pairs)
        if pairs is not None and len(pairs) != len(texts):
            raise ValueError(
                f"`pairs` must be as many as `texts`. Received: {len(texts)} texts and {len(pairs)} pairs."
            )
        model = self._choose_model(allow_special)
        rows = [_encode(model, each, return_offsets) for each in (texts, pairs) if each is not None]
        special = SpecialIds(self.pad_token_id, self.cls_token_id, self.sep_token_id)
        return build_inputs(rows[0], None if pairs is None else rows[1], special, layout)

    def as_layer(
        self,
        max_length: int = 512,
        padding: str = "longest",
        *,
        return_offsets: bool = False,
        pad_to_multiple_of: int | None = None,
        doc_stride: int | None = None,
        allow_special: bool = False,
    ) -> "TokenizerLayer":
        """Returns a Keras layer that does the same inside a TensorFlow graph, for `tf.data` and for serving raw text.

        Args:
            max_length: the most ids in a row, special ones included; longer rows are cut as in a call.
            padding: "longest" or "max_length".
            return_offsets, pad_to_multiple_of, doc_stride, allow_special: as in a call; offsets are in bytes.

        Returns:
            A layer: tf.string [B], or two of them, in; a dict of int32 [B, L] as from a call out.

        Raises:
            ValueError: if the vocabulary needs a segmenter, which a graph cannot run.
        """
        # TensorFlow is loaded only where the graph is asked for: everything else here runs without it.
        from albert_tf.tokenization.layer import TokenizerLayer

        layout = BatchLayout(max_length, padding, True, pad_to_multiple_of, doc_stride)
        return TokenizerLayer(self._model, layout, return_offsets, allow_special)

    def __repr__(self) -> str:
        return f"<AlbertTokenizer: {self.vocab_size:,} pieces from {self._model.source}, {self.options}>"

    def __len__(self) -> int:
        return self.vocab_size

    def __reduce__(self):
        return AlbertTokenizer, (self._model,)

    @functools.cached_property
    def _special_model(self) -> SplitAtSpecialTokens:
        return SplitAtSpecialTokens(self._model)

    def _choose_model(self, allow_special: bool) -> PieceModel | SplitAtSpecialTokens:
        return self._special_model if allow_special else self._model


def _encode(model: PieceModel | SplitAtSpecialTokens, texts: list[str], with_offsets: bool) -> TokenRows:
    if not with_offsets:
        return TokenRows(model.encode_batch(texts))
    for index, text in enumerate(texts):
        if not isinstance(text, str | bytes):
            raise_not_text(text, index)
    encoded = [model.encode_with_offsets(text) for text in texts]
    return TokenRows([one.ids for one in encoded], [one.offsets for one in encoded])


def _as_batch(texts: str | Sequence[str]) -> list[str]:
    if type(texts).__module__.startswith(("tensorflow.", "keras.")):
        raise ValueError(
            f"`texts` must be strings. Received: a {type(texts).__name__}; for tensors, in `tf.data` or in a model, "
            "use the layer that `tokenizer.as_layer()` returns."
        )
    return [texts] if isinstance(texts, str | bytes) else list(texts)
