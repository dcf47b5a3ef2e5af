"""The vocabularies that tests of vocabulary files load: KoELECTRA's, and small ones made here."""

import functools
import lzma

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.wordpiece.model import WordPieceModel
from albert_tf.tokenization.wordpiece.vocabulary import WordPieceOptions
from tests.parameters import MadeOnce
from tests.tokenization.golden import GOLDEN

WORD_END_PIECES = (
    *("[CLS]", "[SEP]", "[MASK]", "[UNK]", "나", "는_", "밥", "을_", "먹었다", "먹었다_"),
    *("._", ".", "...", "..._", "_", "밥_", "는", "한", "글_", "ㅋ", "ㅋㅋ", "ㅋㅋㅋ_"),
    *("a", "b", "c", "a_", "b_", "abc_", "é_", "#", "##_", "__"),
)


@functools.cache
def korean_pieces() -> tuple[str, ...]:
    """Returns the 32,200 pieces that the recorded lines were made with."""
    with lzma.open(GOLDEN / "W1_wordpiece" / "vocab.txt.xz", "rt", encoding="utf-8") as file:
        return tuple(file.read().split("\n"))


@functools.cache
def korean(**options) -> AlbertTokenizer:
    return AlbertTokenizer(WordPieceModel(korean_pieces(), WordPieceOptions(**options)))


@functools.cache
def word_end(**options) -> AlbertTokenizer:
    return AlbertTokenizer(
        WordPieceModel(WORD_END_PIECES, WordPieceOptions(scheme="word_end", keep_accents=True, **options))
    )


TOKENIZERS = MadeOnce(
    {
        "lower": korean,
        "reference": lambda: korean(reference_accents=True),
        "cased": lambda: korean(do_lower_case=False, keep_accents=True),
        "reference_cased": lambda: korean(do_lower_case=False, keep_accents=True, reference_accents=True),
        "whole_chinese": lambda: korean(tokenize_chinese_chars=False),
        "word_end": word_end,
        "bare_final": lambda: word_end(bare_final=True),
    }
)
