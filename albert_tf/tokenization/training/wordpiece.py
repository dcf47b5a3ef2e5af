"""Trains WordPiece vocabularies with SentencePiece's BPE trainer.

The trainer does not support "##". Therefore characters are replaced by stand-ins, which are different for a character
at the beginning of a word and for the same character inside a word.
"""

import itertools
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import sentencepiece

from albert_tf.files.urls import location
from albert_tf.tokenization.files import VOCABULARY_FILE, check_no_other_vocabulary
from albert_tf.tokenization.training.report import VocabularyReport, report_vocabulary
from albert_tf.tokenization.training.sentencepiece import checked_symbols, run_trainer
from albert_tf.tokenization.training.text import LineOptions, TrainingText
from albert_tf.tokenization.wordpiece.longest_match import MAX_WORD_LENGTH
from albert_tf.tokenization.wordpiece.model import WordPieceModel
from albert_tf.tokenization.wordpiece.vocabulary import CONTINUATION, SPECIAL_PIECES, WordPieceOptions

# Unicode's two private-use planes, without their noncharacters.
_STAND_INS = (range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))
_MAX_STAND_INS = sum(map(len, _STAND_INS))
_MAX_PIECE_LENGTH = 50


def train_wordpiece(
    input_files: str | Path | Iterable[str | Path],
    folder: str | Path,
    vocab_size: int = 30_000,
    *,
    do_lower_case: bool = True,
    keep_accents: bool | None = None,
    character_coverage: float = 0.99995,
    user_defined_symbols: Iterable[str] = (),
    input_sentence_size: int = 10_000_000,
    max_sentence_length: int = 4192,
    heldout_files: str | Path | Iterable[str | Path] = (),
    heldout_share: float = 0.01,
    seed: int = 12345,
) -> VocabularyReport:
    """Trains a WordPiece vocabulary and writes a folder for `AlbertTokenizer.from_pretrained`.

    Text is cleaned and split into words as by the tokenizer. Ids 0 to 4 are [PAD], [UNK], [CLS], [SEP] and [MASK]. The
    same text, options and seed give the same vocabulary.

    Args:
        input_files: UTF-8 text files, one sentence or paragraph per line; `.gz` files are decompressed.
        folder: folder to write, created if necessary.
        vocab_size: the number of pieces, including special ones.
        do_lower_case: lower-case text.
        keep_accents: do not drop accents. None is False, with a warning if the text is mostly Hangul.
        character_coverage: fraction of characters to cover; words with rarer ones become unknown.
        user_defined_symbols: words that are one piece each.
        input_sentence_size, max_sentence_length, heldout_files, heldout_share, seed: as for `train_sentencepiece`.

    Returns:
        VocabularyReport.

    Raises:
        ValueError: a file does not exist or is not UTF-8, the text is empty or too small, or an option is invalid.

    References:
        Schuster and Nakajima (2012), "Japanese and Korean voice search"; the pairs are chosen as in Sennrich et al.
        (2016), arXiv 1508.07909.
    """
    check_no_other_vocabulary(folder, VOCABULARY_FILE)
    symbols = checked_symbols(user_defined_symbols, SPECIAL_PIECES)
    line_options = LineOptions(input_sentence_size, max_sentence_length, heldout_share, seed)
    text = TrainingText(input_files, line_options, heldout_files)
    options = WordPieceOptions(do_lower_case=do_lower_case, keep_accents=text.choose_keep_accents(keep_accents))
    words = _count_words(text, options, symbols)
    pieces = _learn_pieces(words, [*SPECIAL_PIECES, *symbols], vocab_size, character_coverage)
    model = WordPieceModel(pieces, options, source="the new vocabulary")
    model.save(folder)
    return report_vocabulary(location(folder), "wordpiece", model, text)


def _count_words(text: TrainingText, options: WordPieceOptions, symbols: list[str]) -> Counter[str]:
    """Counts words, except symbols, which are pieces already, and very long words, which are unknown."""
    splitter = WordPieceModel(SPECIAL_PIECES, options)
    for symbol in symbols:
        if splitter.split_words(symbol) != [symbol]:
            raise ValueError(
                "Each of `user_defined_symbols` of a WordPiece vocabulary must be one word after the clean-up. "
                f"Received: user_defined_symbols={symbols!r}, where {symbol!r} becomes {splitter.split_words(symbol)}; "
                "remove it, or train a SentencePiece vocabulary."
            )
    words: Counter[str] = Counter()
    for line in text.lines():
        words.update(splitter.split_words(line))
    return Counter({w: n for w, n in words.items() if len(w) <= MAX_WORD_LENGTH and w not in symbols})


def _learn_pieces(words: Counter[str], known: list[str], vocab_size: int, character_coverage: float) -> list[str]:
    """Returns the known pieces and as many new ones as needed; trains again if some new ones are already known."""
    again = 0
    while True:
        # SentencePiece's own unknown piece is dropped.
        surplus = len(known) - 1 - again
        learnt = _train(words, vocab_size=vocab_size, surplus=surplus, character_coverage=character_coverage)
        pieces = list(dict.fromkeys([*known, *learnt]))
        if len(pieces) == vocab_size:
            return pieces
        again += vocab_size - len(pieces)


def _train(words: Counter[str], **settings) -> list[str]:
    stand_ins = _stand_ins(words)
    known = {
        word: count for word, count in words.items() if all(position in stand_ins for position in _positions(word))
    }
    trained = run_trainer(
        (f"{''.join(stand_ins[p] for p in _positions(w))}\t{n}" for w, n in known.items()),
        input_format="tsv",
        model_type="bpe",
        normalization_rule_name="identity",
        add_dummy_prefix=False,
        split_by_unicode_script=False,
        split_by_number=False,
        max_sentencepiece_length=_MAX_PIECE_LENGTH,
        unk_id=0,
        **settings,
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=trained)
    positions = {stand_in: position for position, stand_in in stand_ins.items()}
    learnt = ([positions[c] for c in processor.IdToPiece(index)] for index in range(1, processor.GetPieceSize()))
    return [CONTINUATION * inside + first + "".join(c for _, c in rest) for (inside, first), *rest in learnt]


def _positions(word: str) -> list[tuple[bool, str]]:
    """Returns each character of a word, and whether it is inside.

    >>> _positions("aba")
    [(False, 'a'), (True, 'b'), (True, 'a')]
    """
    return [(index > 0, character) for index, character in enumerate(word)]


def _stand_ins(words: Counter[str]) -> dict[tuple[bool, str], str]:
    """Assigns a stand-in to each character at the start of a word, and to each inside one, the most frequent first."""
    counts: Counter[tuple[bool, str]] = Counter()
    for word, count in words.items():
        for position in _positions(word):
            counts[position] += count
    frequent = [position for position, _ in counts.most_common(_MAX_STAND_INS)]
    return {position: chr(code) for position, code in zip(frequent, itertools.chain(*_STAND_INS))}
