"""Trains WordPiece vocabularies with the library tokenizers of Hugging Face."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from albert_tf.files.installation import install_command
from albert_tf.files.urls import location
from albert_tf.tokenization.files import VOCABULARY_FILE, check_no_other_vocabulary
from albert_tf.tokenization.training.report import VocabularyReport, report_vocabulary
from albert_tf.tokenization.training.sentencepiece import check_sizes, checked_symbols, in_thread, too_large, too_small
from albert_tf.tokenization.training.text import LineOptions, TrainingText
from albert_tf.tokenization.wordpiece.longest_match import MAX_WORD_LENGTH
from albert_tf.tokenization.wordpiece.model import WordPieceModel
from albert_tf.tokenization.wordpiece.vocabulary import CONTINUATION, SPECIAL_PIECES, WordPieceOptions

_WORDS_AT_ONCE = 1000


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

    It needs the extra `wordpiece`. Text is cleaned and split into words as by the tokenizer. Ids 0 to 4 are [PAD],
    [UNK], [CLS], [SEP] and [MASK]. The same text, options and seed give the same vocabulary.

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
        ValueError: a file does not exist or is not UTF-8, the text is empty or too small, an option is invalid, or
            tokenizers is not installed.

    References:
        Schuster and Nakajima (2012), "Japanese and Korean voice search"; the pairs are chosen as in Sennrich et al.
        (2016), arXiv 1508.07909.
    """
    check_no_other_vocabulary(folder, VOCABULARY_FILE)
    symbols = checked_symbols(user_defined_symbols, SPECIAL_PIECES)
    line_options = LineOptions(input_sentence_size, max_sentence_length, heldout_share, seed)
    text = TrainingText(input_files, line_options, heldout_files)
    options = WordPieceOptions(do_lower_case=do_lower_case, keep_accents=text.choose_keep_accents(keep_accents))
    known = [*SPECIAL_PIECES, *symbols]
    check_sizes(vocab_size, character_coverage, len(known))
    words = _with_frequent_characters(_count_words(text, options, symbols), character_coverage)
    pieces = _learn_pieces(words, known, vocab_size)
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


def _with_frequent_characters(words: Counter[str], coverage: float) -> Counter[str]:
    """The words whose characters are among the most frequent ones, which together are this fraction of all."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    kept, left = set(), coverage * counts.total()
    for character, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if left > 0:
            kept.add(character)
        left -= count
    return Counter({word: count for word, count in words.items() if kept.issuperset(word)})


def _learn_pieces(words: Counter[str], known: list[str], vocab_size: int) -> list[str]:
    """The known pieces, all characters, with their forms inside words, and the most frequent joined pairs."""
    try:
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    except ImportError:
        raise ValueError(f"WordPiece vocabularies need tokenizers; {install_command('wordpiece')}.") from None
    characters = {*itertools.chain(*words), *(CONTINUATION + inside for word in words for inside in word[1:])}
    # Given, because otherwise they have other ids in each process, and so has what is learnt of equal counts.
    given = list(dict.fromkeys([*known, *sorted(characters)]))
    if vocab_size < len(given):
        raise ValueError(too_small(vocab_size, len(given)))
    learner = Tokenizer(models.WordPiece())
    learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # pyright: ignore[reportAttributeAccessIssue]
    trainer = trainers.WordPieceTrainer(vocab_size=vocab_size, special_tokens=given, show_progress=False)
    in_thread(lambda: learner.train_from_iterator(_repeated(words), trainer))
    ids = learner.get_vocab()
    if len(ids) < vocab_size:
        raise ValueError(too_large(vocab_size, len(ids)))
    return sorted(ids, key=ids.__getitem__)


def _repeated(words: Counter[str]) -> Iterator[str]:
    """Each word as often as it was counted."""
    for word, count in words.items():
        for start in range(0, count, _WORDS_AT_ONCE):
            yield " ".join([word] * min(_WORDS_AT_ONCE, count - start))
