"""Trains SentencePiece vocabularies with ALBERT's special pieces, for any language."""

import io
import itertools
import re
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import sentencepiece

from albert_tf.files.atomic import write_json
from albert_tf.files.urls import location
from albert_tf.tokenization.files import MODEL_FILE, TokenizerOptions, check_no_other_vocabulary, english_model_file
from albert_tf.tokenization.interface import PieceModel
from albert_tf.tokenization.korean.kiwi import BORDER, check_segmenter, mark_borders
from albert_tf.tokenization.korean.segmented_model import SegmentedModel
from albert_tf.tokenization.sentencepiece.charsmap import compile_clean_up
from albert_tf.tokenization.sentencepiece.model import SentencePieceModel
from albert_tf.tokenization.sentencepiece.pieces import CLS_PIECE, MASK_PIECE, SEP_PIECE, SPECIAL_PIECES
from albert_tf.tokenization.sentencepiece.proto import normalizer_spec, read_charsmap, replace_charsmap, round_scores
from albert_tf.tokenization.training.text import TrainingText

# As in the published English vocabulary.
_USER_DEFINED_SYMBOLS = ["(", ")", '"', "-", ".", "–", "£", "€"]
_LINES_AT_ONCE = 1000
# Sums of multiples are exact in float32 down to -65,536 (thousands of pieces), so all libraries compute the same scores
# and agree on ties.
_SCORE_STEP = 2**-8


@dataclass(frozen=True)
class VocabularyReport:
    """Report about a trained vocabulary, also written to `vocabulary_report.json` in its folder.

    Attributes:
        folder: folder of the vocabulary, for `AlbertTokenizer.from_pretrained`.
        model_type: "unigram" or "bpe".
        vocab_size: the number of pieces.
        num_lines: number of lines that were read.
        num_skipped_lines: number of lines that were skipped: longer than `max_sentence_length` bytes, or with NUL.
        num_training_lines: number of lines that were used for training.
        num_heldout_lines: number of lines that the vocabulary was tried on.
        unknown_rate: fraction of their tokens that are unknown; None if there are no tokens.
        characters_per_token: with spaces; None if there are no tokens.
    """

    folder: Path
    model_type: str
    vocab_size: int
    num_lines: int
    num_skipped_lines: int
    num_training_lines: int
    num_heldout_lines: int
    unknown_rate: float | None
    characters_per_token: float | None


def train_sentencepiece(
    input_files: str | Path | Iterable[str | Path],
    folder: str | Path,
    vocab_size: int = 30_000,
    *,
    do_lower_case: bool = True,
    keep_accents: bool | None = None,
    model_type: str = "unigram",
    character_coverage: float = 0.99995,
    user_defined_symbols: Iterable[str] = (),
    byte_fallback: bool = False,
    input_sentence_size: int = 10_000_000,
    max_sentence_length: int = 4192,
    heldout_files: str | Path | Iterable[str | Path] = (),
    heldout_share: float = 0.01,
    seed: int = 12345,
    segmenter: str | None = None,
) -> VocabularyReport:
    """Trains a SentencePiece vocabulary and writes a folder for `AlbertTokenizer.from_pretrained`.

    Text is cleaned as by the tokenizer. Ids 0 to 4 are <pad>, <unk>, [CLS], [SEP] and [MASK], and the flags are those
    of Google's ALBERT. The same text, options and seed give the same vocabulary. Scores are rounded to 1/256, so that
    libraries with different precision split text equally.

    Args:
        input_files: UTF-8 text files, one sentence or paragraph per line; `.gz` files are decompressed.
        folder: folder to write, created if necessary.
        vocab_size: the number of pieces, including special ones.
        do_lower_case: lower-case text.
        keep_accents: do not decompose characters and drop combining marks. None is False, with a warning if the text is
            mostly Hangul.
        model_type: "unigram", as in the published vocabularies, or "bpe".
        character_coverage: fraction of characters to cover; rarer characters become unknown.
        user_defined_symbols: strings that are never split, and not changed by the clean-up.
        byte_fallback: encode unknown characters as UTF-8 bytes, with 256 additional pieces.
        input_sentence_size: maximum number of training lines, sampled at random; memory grows with it.
        max_sentence_length: maximum length of lines in bytes; longer ones are skipped.
        heldout_files: text to evaluate the vocabulary on.
        heldout_share: without `heldout_files`, the fraction of lines to hold out, at most 10,000 lines.
        seed: for sampling lines.
        segmenter: "kiwi" prevents pieces across boundaries of Korean morphemes, also when the vocabulary is used. It
            needs `albert-tf[korean]`, and is not supported in TensorFlow graphs.

    Returns:
        VocabularyReport.

    Raises:
        ValueError: a file does not exist or is not UTF-8, the text is empty or too small, or an option is invalid.

    References:
        README of google-research/albert, "SentencePiece"; Kudo (2018), arXiv 1804.10959.
    """
    if model_type not in ("unigram", "bpe"):
        raise ValueError(f"`model_type` must be one of unigram, bpe. Received: model_type={model_type!r}.")
    check_no_other_vocabulary(folder, MODEL_FILE)
    symbols = _checked_symbols(user_defined_symbols)
    text = TrainingText(input_files, heldout_files, input_sentence_size, max_sentence_length, heldout_share, seed)
    options = TokenizerOptions(do_lower_case, text.choose_keep_accents(keep_accents))
    if segmenter is not None:
        check_segmenter(segmenter)
    published = english_model_file().read_bytes()
    cleaned = compile_clean_up(published, do_lower_case=do_lower_case, keep_accents=options.keep_accents)
    # Uses the published normaliser, because the library's rules differ between versions.
    trained = _train(
        text.lines() if segmenter is None else _segmented(text.lines()),
        # With a border at every character, lines are at most four times as long.
        max_sentence_length=max_sentence_length * (1 if segmenter is None else 4),
        user_defined_symbols=symbols if segmenter is None else [*symbols, BORDER],
        vocab_size=vocab_size,
        model_type=model_type,
        character_coverage=character_coverage,
        byte_fallback=byte_fallback,
        pad_id=0,
        unk_id=1,
        control_symbols=[CLS_PIECE, SEP_PIECE, MASK_PIECE],
        normalizer=sentencepiece.SentencePieceNormalizer(normalizer_spec=normalizer_spec(read_charsmap(cleaned))),
    )
    if model_type == "unigram":
        trained = round_scores(trained, _SCORE_STEP)
    # Saved without the clean-up, which is added on loading, as in Google's code and Hugging Face's.
    kind = SentencePieceModel if segmenter is None else SegmentedModel
    model = kind(replace_charsmap(trained, read_charsmap(published)), options, source="the new model")
    model.save(folder)
    return report_vocabulary(location(folder), model_type, model, text)


def _segmented(lines: Iterator[str]) -> Iterator[str]:
    while batch := list(itertools.islice(lines, _LINES_AT_ONCE)):
        yield from mark_borders(batch)


def _train(lines: Iterator[str], vocab_size: int, character_coverage: float, **settings: Any) -> bytes:
    """Trains a SentencePiece model and returns it serialised; the settings are SentencePiece's."""
    if not 0.98 <= character_coverage <= 1:
        raise ValueError(
            f"`character_coverage` must be between 0.98 and 1.0. Received: character_coverage={character_coverage!r}."
        )
    if isinstance(vocab_size, bool) or not isinstance(vocab_size, int) or not 0 < vocab_size < 2**31:
        raise ValueError(
            "`vocab_size` must be an integer larger than the number of special pieces and user-defined symbols. "
            f"Received: vocab_size={vocab_size!r}."
        )
    written = io.BytesIO()
    try:
        _train_in_thread(
            sentence_iterator=lines,
            model_writer=written,
            vocab_size=vocab_size,
            character_coverage=character_coverage,
            bos_id=-1,
            eos_id=-1,
            shuffle_input_sentence=True,
            num_threads=16,  # the results depend on it
            minloglevel=2,
            **settings,
        )
    except RuntimeError as error:
        raise ValueError(_explain(str(error), vocab_size)) from error
    return written.getvalue()


def _train_in_thread(**settings) -> None:
    """Trains in a thread, because in the main thread Ctrl-C would wait until SentencePiece has finished."""
    outcome: Future[None] = Future()

    def train() -> None:
        try:
            outcome.set_result(sentencepiece.SentencePieceTrainer.Train(**settings))
        except Exception as error:
            outcome.set_exception(error)
        finally:
            sentencepiece.set_min_log_level(0)  # `minloglevel` has changed it for the process

    threading.Thread(target=train, daemon=True).start()
    outcome.result()


def _checked_symbols(symbols: Iterable[str]) -> list[str]:
    """The user-defined symbols of every vocabulary, and these, each once.

    >>> _checked_symbols(["@user", "#tag", "@user"])[8:]
    ['@user', '#tag']
    """
    symbols = [symbols] if isinstance(symbols, str) else list(dict.fromkeys(symbols))
    for symbol in symbols:
        if symbol.split() != [symbol]:
            raise ValueError(
                "Each of `user_defined_symbols` must be text without white space. "
                f"Received: user_defined_symbols={symbols!r} with {symbol!r}."
            )
        if symbol in SPECIAL_PIECES:
            raise ValueError(
                f"`user_defined_symbols` must not name special pieces, which every vocabulary has and no text yields. "
                f"Received: user_defined_symbols={symbols!r} with {symbol!r}; leave it out."
            )
    return list(dict.fromkeys([*_USER_DEFINED_SYMBOLS, *symbols]))


def _explain(message: str, vocab_size: int) -> str:
    """Turns SentencePiece's message into one that says what to change."""
    if largest := re.search(r"too high \(\d+\)\..*<= (\d+)", message):
        return (
            "`vocab_size` must not be larger than what the text can fill. "
            f"Received: vocab_size={vocab_size}; the largest that fits is {largest[1]}."
        )
    if smallest := re.search(r"smaller than required_chars. -?\d+ vs (\d+)", message):
        return (
            "`vocab_size` must be large enough for every character of the text. Received: "
            f"vocab_size={vocab_size}; the smallest that fits is {smallest[1]}, or lower character_coverage."
        )
    return f"SentencePiece could not train on this text. Received: vocab_size={vocab_size}; it says: {message}"


def report_vocabulary(folder: Path, model_type: str, model: PieceModel, text: TrainingText) -> VocabularyReport:
    """Evaluates a new vocabulary on the held-out lines of `text` and writes the report to its folder."""
    rows = model.encode_batch(text.heldout)
    tokens, unknown = sum(map(len, rows)), sum(int((row == model.special.unk).sum()) for row in rows)
    rates = (unknown / tokens, sum(map(len, text.heldout)) / tokens) if tokens else (None, None)
    counts = (text.num_lines, text.num_skipped_lines, text.num_training_lines, len(text.heldout))
    report = VocabularyReport(folder, model_type, len(model.pieces), *counts, *rates)
    values = {name: value for name, value in asdict(report).items() if name != "folder"}
    write_json(folder / "vocabulary_report.json", values)
    return report
