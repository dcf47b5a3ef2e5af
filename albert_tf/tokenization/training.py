"""Training a SentencePiece vocabulary with ALBERT's special pieces, for any language."""

import io
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece

from albert_tf.tokenization.albert_tokenizer import AlbertTokenizer
from albert_tf.tokenization.charsmap import compile_clean_up
from albert_tf.tokenization.folders import TokenizerOptions, english_model_file
from albert_tf.tokenization.model_proto import normalizer_spec, read_charsmap, replace_charsmap
from albert_tf.tokenization.pieces import CLS_PIECE, MASK_PIECE, SEP_PIECE
from albert_tf.tokenization.segmentation import BORDER, Segmenter, load_segmenter
from albert_tf.tokenization.segmented_model import SegmentedModel
from albert_tf.tokenization.sentencepiece_model import SentencePieceModel

MODEL_TYPES = ("unigram", "bpe")

# As in the published English vocabulary: each is one piece wherever it stands.
_USER_DEFINED_SYMBOLS = ["(", ")", '"', "-", ".", "–", "£", "€"]
# SentencePiece sums what its threads found in an order that depends on their number, so that number is fixed.
_NUM_THREADS = 16
_LINES_AT_ONCE = 1000


@dataclass(frozen=True)
class VocabularyReport:
    """What came of training a vocabulary.

    Attributes:
        folder: where the vocabulary lies, for `AlbertTokenizer.from_pretrained`.
        vocab_size: the number of pieces.
        num_lines: the lines of text that were read.
        num_skipped_lines: of these, lines that SentencePiece passes over: longer than `max_sentence_length` bytes, or
            with a NUL character.
    """

    folder: Path
    vocab_size: int
    num_lines: int
    num_skipped_lines: int


@dataclass(frozen=True)
class _Corpus:
    files: list[str]
    num_lines: int
    num_skipped_lines: int


def train_sentencepiece(
    input_files: Iterable[str | Path],
    folder: str | Path,
    vocab_size: int = 30_000,
    *,
    do_lower_case: bool = True,
    keep_accents: bool = False,
    model_type: str = "unigram",
    character_coverage: float = 0.99995,
    input_sentence_size: int = 10_000_000,
    max_sentence_length: int = 4192,
    segmenter: str | None = None,
) -> VocabularyReport:
    """Trains a vocabulary and writes a folder that `AlbertTokenizer.from_pretrained` reads.

    Text is cleaned exactly as the tokenizer will clean it. Ids 0 to 4 are <pad>, <unk>, [CLS], [SEP] and [MASK], and
    the flags are those that Google gives for ALBERT. The same text and flags give the same vocabulary.

    Args:
        input_files: UTF-8 text files, one sentence or paragraph a line.
        folder: where to write; made if it is not there.
        vocab_size: the number of pieces, special ones included.
        do_lower_case: lower-case the text.
        keep_accents: neither decompose characters nor drop combining marks.
        model_type: "unigram" as for the published vocabularies, or "bpe".
        character_coverage: the share of the text's characters that the pieces cover; rarer characters become unknown.
        input_sentence_size: how many lines to draw at random from a larger text.
        max_sentence_length: longer lines, in bytes, are passed over.
        segmenter: "kiwi" lets no piece cross a border of Korean morphemes, here and wherever the vocabulary is used; it
            needs `albert_tf[korean]`, and such a vocabulary cannot be used inside a TensorFlow graph.

    Returns:
        A report of what was read and written.

    Raises:
        ValueError: if a file is not there or not UTF-8, or the text is empty or too small for `vocab_size`.

    References:
        README of google-research/albert, "SentencePiece"; Kudo (2018), arXiv 1804.10959.
    """
    if model_type not in MODEL_TYPES:
        raise ValueError(f"`model_type` must be one of {', '.join(MODEL_TYPES)}. Received: model_type={model_type!r}.")
    corpus = _inspect(input_files, max_sentence_length)
    options = TokenizerOptions(do_lower_case=do_lower_case, keep_accents=keep_accents)
    published = english_model_file().read_bytes()
    cleaned = compile_clean_up(published, do_lower_case=do_lower_case, keep_accents=keep_accents)
    source = {"input": corpus.files, "max_sentence_length": max_sentence_length}
    if segmenter is not None:
        source = _segmented(corpus.files, load_segmenter(segmenter), max_sentence_length)
    # The published normaliser rather than the library's own: that one's rules differ from version to version.
    trained = _train(
        **source,
        vocab_size=vocab_size,
        model_type=model_type,
        character_coverage=character_coverage,
        input_sentence_size=input_sentence_size,
        normalizer=sentencepiece.SentencePieceNormalizer(normalizer_spec=normalizer_spec(read_charsmap(cleaned))),
    )
    # Written without the clean-up, which each reader adds: so do Google's code and Hugging Face's.
    model = SentencePieceModel(replace_charsmap(trained, read_charsmap(published)), options, source="the new model")
    tokenizer = AlbertTokenizer(model if segmenter is None else SegmentedModel(model, load_segmenter(segmenter)))
    tokenizer.save_pretrained(folder)
    return VocabularyReport(Path(folder), tokenizer.vocab_size, corpus.num_lines, corpus.num_skipped_lines)


def _inspect(input_files: Iterable[str | Path], max_sentence_length: int) -> _Corpus:
    """Reads all files once, so that a broken one is named before hours of training."""
    files = [str(file) for file in ([input_files] if isinstance(input_files, str | Path) else input_files)]
    num_lines = num_skipped = 0
    for name in files:
        if not Path(name).is_file():
            raise ValueError(f"`input_files` must be files that exist. Received: {name!r}.")
        offset = 0
        with open(name, "rb") as file:
            for line in file:
                _check_utf8(line, name, offset)
                offset += len(line)
                text = line.strip()
                num_lines += bool(text)
                num_skipped += len(text) > max_sentence_length or b"\0" in text
    if num_lines == num_skipped:
        raise ValueError(
            f"`input_files` must hold text to learn from. Received: {len(files)} files with {num_lines} lines of text, "
            f"of which {num_skipped} are longer than max_sentence_length={max_sentence_length} bytes or hold NUL."
        )
    return _Corpus(files, num_lines, num_skipped)


def _check_utf8(line: bytes, name: str, offset: int) -> None:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"`input_files` must be UTF-8 text. Received: {name!r}, where byte {offset + error.start} is no UTF-8; "
            "convert the file, for example with iconv."
        ) from error


def _segmented(files: list[str], segmenter: Segmenter, max_sentence_length: int) -> dict[str, Any]:
    """Returns what SentencePiece reads where text is to be segmented first."""
    texts = (line for name in files for line in _kept_lines(name, max_sentence_length))
    marked = (line for batch in _batches(texts) for line in segmenter.mark(batch))
    symbols = [*_USER_DEFINED_SYMBOLS, BORDER]
    # With a border at every character a line is four times as long at most.
    return {
        "sentence_iterator": marked,
        "user_defined_symbols": symbols,
        "max_sentence_length": 4 * max_sentence_length,
    }


def _kept_lines(name: str, max_sentence_length: int) -> Iterator[str]:
    with open(name, "rb") as file:
        yield from (line.strip().decode("utf-8") for line in file if len(line.strip()) <= max_sentence_length)


def _batches(lines: Iterator[str]) -> Iterator[list[str]]:
    while batch := list(itertools.islice(lines, _LINES_AT_ONCE)):
        yield batch


def _train(*, vocab_size: int, **settings) -> bytes:
    written = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.Train(
            model_writer=written,
            vocab_size=vocab_size,
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            control_symbols=[CLS_PIECE, SEP_PIECE, MASK_PIECE],
            shuffle_input_sentence=True,
            num_threads=_NUM_THREADS,
            minloglevel=2,
            **{"user_defined_symbols": _USER_DEFINED_SYMBOLS, **settings},
        )
    except RuntimeError as error:
        raise ValueError(_explain(str(error), vocab_size)) from error
    finally:
        sentencepiece.set_min_log_level(0)
    return written.getvalue()


def _explain(message: str, vocab_size: int) -> str:
    """Turns SentencePiece's message into one that says what to change."""
    if largest := re.search(r"too high \(\d+\)\..*<= (\d+)", message):
        return (
            "`vocab_size` must not be larger than what the text can fill. "
            f"Received: vocab_size={vocab_size}; the largest that fits is {largest[1]}."
        )
    if smallest := re.search(r"smaller than required_chars. \d+ vs (\d+)", message):
        return (
            "`vocab_size` must have room for every character of the text. "
            f"Received: vocab_size={vocab_size}; the smallest that fits is {smallest[1]}, or lower character_coverage."
        )
    return f"SentencePiece could not train on this text. Received: vocab_size={vocab_size}; it says: {message}"
