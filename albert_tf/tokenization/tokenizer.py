"""`AlbertTokenizer`: converts raw text to model inputs with SentencePiece or WordPiece.

B batch, L sequence, V vocabulary.
"""

import functools
import operator
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from albert_tf.lazy import FIRST_IMPORTS
from albert_tf.tokenization.added_tokens import AddedTokensModel
from albert_tf.tokenization.batching import BatchLayout, TokenRows, as_batch, build_inputs
from albert_tf.tokenization.files import english_model_file, find_vocabulary
from albert_tf.tokenization.interface import AddedToken, VocabularyModel
from albert_tf.tokenization.loading import load_piece_model
from albert_tf.tokenization.splitting import Encoder, SplitAtTokens

if TYPE_CHECKING:
    from albert_tf.tokenization.layer import TokenizerLayer

# Arguments of other libraries' tokenizers, and what takes their place.
_ELSEWHERE = {
    "return_tensors": "leave it out: the arrays are NumPy's, which models take",
    "return_offsets_mapping": "use return_offsets=True",
    "return_overflowing_tokens": "use doc_stride, which splits long texts into windows",
    "stride": "use doc_stride, from the start of one window to that of the next",
    "add_special_tokens": "use encode or encode_batch for ids without [CLS] and [SEP]",
    "text_pair": "use pairs",
    "is_split_into_words": "join the words, and use return_offsets=True with find_tokens",
}


class AlbertTokenizer:
    """Converts text to the ids of an ALBERT vocabulary, and back.

    `as_layer` returns a layer that does the same in a TensorFlow graph. By default text never gives special ids: a
    literal "[MASK]" is plain text.

    Args:
        model: PieceModel, as loaded by `from_pretrained`.

    Call arguments:
        texts: a batch of texts; a single text is a batch of one.
        pairs: second texts, as many as `texts`, or None.
        max_length: maximum number of ids per row, including special ids.
        padding: "longest" or "max_length".
        truncation: whether to truncate texts that do not fit, instead of raising; of a pair, id by id, the longer text,
            else the second. Of a text 65,536 characters are read at most, or 128 times `max_length` if that is more.
        return_offsets: whether to return `offsets`.
        pad_to_multiple_of: with padding "longest", pad to a multiple of this number.
        doc_stride: split texts that do not fit into several rows instead of truncating them: windows that start this
            many ids after each other, as the reference's doc_stride. (Hugging Face's `stride` is the overlap of two
            windows: `max_length` - 2 - `doc_stride` for a single text.) Of a pair, the second text is split, and the
            first is in every row.
        allow_special: whether a literal "[MASK]", "[CLS]", "[SEP]", "<pad>" or "<unk>" in a text becomes its special
            id, together with preceding white space. With byte fallback "<unk>" is always plain text.

    Returns:
        dict of int32 arrays [B, L]: `input_ids` ([CLS] text [SEP], or [CLS] text [SEP] pair [SEP]), `attention_mask`
        (0 for padding, else 1) and `token_type_ids` (1 for the pair and its [SEP], else 0). With `return_offsets` also
        `offsets` [B, L, 2]: start and exclusive end in characters of the original text (in bytes if it is bytes), 0 and
        0 for [CLS], [SEP] and padding; SentencePiece's words have the white space before them, unlike in transformers.
        With `doc_stride` there is a row per window, and `overflow_to_sample_mapping` [rows]: the index of its text.

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

    def __init__(self, model: VocabularyModel | AddedTokensModel):
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
        revision: str | None = None,
    ) -> "AlbertTokenizer":
        """Loads a tokenizer.

        Args:
            path: a SentencePiece file, a vocabulary file (`*.txt`, one piece per line), a `tokenizer.json`, or a folder
                with `spiece.model`, `30k-clean.model`, `vocab.txt`, else a single `*.model` or `*vocab*.txt`, else
                `tokenizer.json`, as saved by transformers 5; or the name of a model on huggingface.co, such as
                "albert/albert-base-v2", which needs `albert-tf[hub]`.
            do_lower_case: whether to lower-case text. None: the value in `tokenizer_config.json`, else True.
            keep_accents: whether to keep accents, instead of decomposing characters and dropping combining marks. None:
                as above, else False; for vocabulary files True if they are cased or have the scheme "word_end".
            reference_digit_comma: whether to split pieces that end in digit + comma exactly as Google's code under
                Python 3, which leaves a stray word start. None: as above, else False. Only for SentencePiece; the
                following arguments are only for vocabulary files.
            scheme: "wordpiece" (pieces inside a word begin with "##") or "word_end" (pieces at the end of a word end
                with "_"). None: as above, else detected from the pieces.
            reference_accents: whether to leave characters decomposed after dropping accents, as in the reference, which
                also decomposes Hangul. None: as above, else False.
            bare_final: whether the last word of a text has no mark with "word_end". None: as above, else False.
            revision: of a name, its branch, tag or commit. None: the newest.

        Raises:
            ValueError: there is no such file, or it is not an ALBERT vocabulary.
        """
        model = load_piece_model(
            find_vocabulary(path, revision),
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
        """Loads the published vocabulary of Google's English models (30,000 pieces), which is part of the package."""
        return cls.from_pretrained(english_model_file(), do_lower_case, keep_accents, reference_digit_comma)

    def save_pretrained(self, folder: str | Path) -> None:
        """Writes the vocabulary and `tokenizer_config.json` in the format of Hugging Face.

        SentencePiece models are written unchanged to `spiece.model`, and as complete tokenizers to `tokenizer.json`,
        for AlbertTokenizer; vocabulary files to `vocab.txt` and `tokenizer.json`, for BertTokenizer. If ids would
        differ there, neither `tokenizer.json` nor a `tokenizer_class` is written: for the scheme "word_end", a
        segmenter, BPE, byte fallback, or user-defined symbols that the clean-up would change.

        Args:
            folder: folder to write, created if necessary.
        """
        self._model.save(folder)

    def add_tokens(self, tokens: str | Iterable[str], *, normalized: bool = True) -> int:
        """Adds tokens, such as "[E1]" or the words of a domain, with the ids that follow those of the vocabulary.

        As in transformers, texts are split at added tokens first, and each part in between is tokenized as a text of
        its own. The model needs rows for them: `from_pretrained(folder, vocab_size=len(tokenizer))`.

        Args:
            tokens: the tokens. Those that are pieces or added tokens already are left out.
            normalized: whether tokens are found after the clean-up, as by default in transformers: "covid" in "COVID"
                if texts are lower-cased. False: only as they are written, such as "US" but not "us".

        Returns: int. The number of tokens added.

        Raises:
            ValueError: a token is not a string of visible characters, or is equal to another one after the clean-up.

        >>> tokenizer = AlbertTokenizer.english()
        >>> _ = tokenizer.add_tokens(["[E1]", "[/E1]", "covid"])
        >>> tokenizer.tokenize("[E1]Covid[/E1] is here")
        ['[E1]', 'covid', '[/E1]', '▁is', '▁here']
        """
        contents: Any = [tokens] if isinstance(tokens, str) or not isinstance(tokens, Iterable) else tokens
        added = [AddedToken(token, normalized) for token in contents]
        model = self._model if isinstance(self._model, AddedTokensModel) else AddedTokensModel(self._model, ())
        model = model.with_tokens(added)
        if count := len(model.pieces) - len(self):
            vars(self).clear()  # what was computed of the former vocabulary
            self._model = model
        return count

    @property
    def added_tokens(self) -> dict[str, int]:
        """The ids of the tokens added by `add_tokens`, by token."""
        tokens = getattr(self._model, "tokens", ())
        return {token.content: index for index, token in enumerate(tokens, len(self) - len(tokens))}

    @property
    def options(self) -> Any:
        """The options of the clean-up."""
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
        """The id of padding."""
        return self._model.special.pad

    @property
    def unk_token_id(self) -> int:
        """The id of unknown text."""
        return self._model.special.unk

    @property
    def cls_token_id(self) -> int:
        """The first id of every row."""
        return self._model.special.cls

    @property
    def sep_token_id(self) -> int:
        """The id after each text of a row."""
        return self._model.special.sep

    @property
    def mask_token_id(self) -> int:
        """The id of masked tokens."""
        return self._model.special.mask

    @functools.cached_property
    def start_of_word(self) -> np.ndarray:
        """bool [V], whether each piece begins a word, for whole-word masking."""
        return self._model.find_word_starts()

    @functools.cached_property
    def end_of_word(self) -> np.ndarray:
        """bool [V], whether each piece ends a word; all False unless pieces mark the ends of words."""
        return self._model.find_word_ends()

    @functools.cached_property
    def vocab_hash(self) -> str:
        """A hash of vocabulary and options; equal hashes mean equal ids for every text."""
        return self._model.hash_vocabulary()

    def check_fits(self, vocab_size: int) -> None:
        """Raises ValueError if the vocabulary does not have `vocab_size` pieces."""
        if vocab_size != self.vocab_size:
            raise ValueError(
                f"The model's `vocab_size` must be that of its vocabulary. Received: vocab_size={vocab_size}, "
                f"a vocabulary of {self.vocab_size} pieces in {self._model.source}; use the model's own vocabulary, or "
                f"create the model with vocab_size={self.vocab_size}, or load it so if tokens were added."
            )

    def tokenize(self, text: str | bytes) -> list[str]:
        """Splits a text into pieces; unknown text appears cleaned (SentencePiece) or as [UNK] (WordPiece)."""
        return self._model.tokenize(*as_batch([text]))

    def encode(self, text: str | bytes, *, allow_special: bool = False) -> list[int]:
        """Returns a text's ids, without [CLS] and [SEP].

        Text may be UTF-8 bytes; invalid bytes, and lone surrogates in strings, become the unknown id.
        """
        return self.encode_batch([text], num_threads=1, allow_special=allow_special)[0].tolist()

    def encode_batch(
        self, texts: Iterable[str | bytes], num_threads: int | None = None, *, allow_special: bool = False
    ) -> list[np.ndarray]:
        """Returns the ids of many texts, without [CLS] and [SEP].

        Args:
            texts: the texts.
            num_threads: number of threads, by default one per core; vocabulary files always use one.
            allow_special: as in a call.

        Returns:
            One int32 array per text, which may be a read-only view of a buffer.

        Raises:
            ValueError: `texts` is a single text, or one of them is not a string.
        """
        if isinstance(texts, str | bytes):
            raise ValueError(f"`texts` must be several texts. Received: a {type(texts).__name__}; use `encode` for it.")
        return self._choose_model(allow_special).encode_batch(as_batch(texts), num_threads)

    def decode(self, ids: Iterable[int]) -> str:
        """Converts ids to text, without special ids; unknown pieces become " ⁇ " or "[UNK]"."""
        return self._model.decode(self._valid(ids))

    def batch_decode(self, rows: Iterable[Iterable[int]]) -> list[str]:
        """`decode` of each row; padding and other special ids are left out."""
        return [self.decode(row) for row in rows]

    def convert_ids_to_tokens(self, ids: int | Iterable[int]) -> str | list[str]:
        """The piece of an id, or those of several; the reverse of `convert_tokens_to_ids`."""
        if not isinstance(ids, Iterable):
            return self.pieces[self._valid([ids])[0]]
        return [self.pieces[index] for index in self._valid(ids)]

    def convert_tokens_to_ids(self, tokens: str | Iterable[str]) -> int | list[int]:
        """The id of a piece, or those of several; of an unknown piece that of unknown text."""
        if isinstance(tokens, str):
            return self._id_by_piece.get(tokens, self.unk_token_id)
        return [self._id_by_piece.get(token, self.unk_token_id) for token in tokens]

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
        **unknown: Any,
    ) -> dict[str, np.ndarray]:
        for name in unknown:
            hint = f"; {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
            raise TypeError(f"A call of the tokenizer has no argument `{name}`{hint}.")
        layout = BatchLayout(max_length, padding, truncation, pad_to_multiple_of, doc_stride)
        texts, pairs = as_batch(texts), None if pairs is None else as_batch(pairs)
        if pairs is not None and len(pairs) != len(texts):
            raise ValueError(
                f"`pairs` must have the length of `texts`. Received: {len(texts)} texts and {len(pairs)} pairs."
            )
        model = self._choose_model(allow_special)
        rows = [_encode(model, layout.used_parts(each), return_offsets) for each in (texts, pairs) if each is not None]
        return build_inputs(rows[0], None if pairs is None else rows[1], self._model.special, layout)

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
        """Returns a Keras layer that does the same in a TensorFlow graph, for `tf.data` and for serving raw text.

        Args:
            max_length, padding, return_offsets, pad_to_multiple_of, doc_stride, allow_special: as in a call; long texts
                are truncated, and offsets are in bytes.

        Returns:
            A layer from tf.string [B], or two of them, to a dict of int32 [B, L] as returned by a call.

        Raises:
            ValueError: the vocabulary needs a segmenter, which cannot run in a graph.
        """
        with FIRST_IMPORTS:  # here, because nothing else needs TensorFlow
            from albert_tf.tokenization.layer import TokenizerLayer

        layout = BatchLayout(max_length, padding, True, pad_to_multiple_of, doc_stride)
        return TokenizerLayer(self._model, layout, return_offsets, allow_special)

    def __repr__(self) -> str:
        return f"<AlbertTokenizer: {self.vocab_size:,} pieces from {self._model.source}, {self.options}>"

    def __len__(self) -> int:
        return self.vocab_size

    def __reduce__(self):
        return AlbertTokenizer, (self._model,)

    def _valid(self, ids: Iterable[int]) -> list[int]:
        try:
            ids = [operator.index(index) for index in ids]
        except TypeError:
            raise ValueError(
                "`ids` must be the ids of one text, a list of integers; for several texts use `batch_decode`. "
                f"Received: {repr(ids)[:60]}."
            ) from None
        wrong = [index for index in ids if not 0 <= index < self.vocab_size]
        if wrong:
            raise ValueError(f"`ids` must be between 0 and {self.vocab_size - 1}. Received: {wrong[0]}.")
        return ids

    @functools.cached_property
    def _id_by_piece(self) -> dict[str, int]:
        return {piece: index for index, piece in enumerate(self.pieces)}

    @functools.cached_property
    def _special_model(self) -> SplitAtTokens:
        return SplitAtTokens(self._model, self._model.special_tokens())

    def _choose_model(self, allow_special: bool) -> Encoder:
        return self._special_model if allow_special else self._model


def _encode(model: Encoder, texts: list[Any], with_offsets: bool) -> TokenRows:
    if not with_offsets:
        return TokenRows(model.encode_batch(texts))
    encoded = [model.encode_with_offsets(text) for text in texts]
    return TokenRows([one.ids for one in encoded], [one.offsets for one in encoded])
