"""What the tokenizer's tests compare with: recorded values of the reference, and its two steps one after the other."""

import functools
import io
import json
import lzma
import math
from collections.abc import Sequence
from pathlib import Path

import sentencepiece

from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.files import TokenizerOptions, english_model_file
from albert_tf.tokenization.sentencepiece.charsmap import clean_characters
from albert_tf.tokenization.sentencepiece.model import SentencePieceModel

GOLDEN = Path(__file__).parents[1] / "golden"
TINY_MODEL = GOLDEN / "T1b_digit_comma" / "tiny.model"

AWKWARD_TEXTS = [
    *("", " ", "\u3000\u2028\t\n", "\0", "a\0b", "\u0301", "\u0301\u0302 \u0301", "[MASK] [CLS][SEP] <pad> <unk> <s>"),
    *("▁ ▁▁a", "½ cup of oﬃce ﬁrst ①②", "１９９９， ９,９ 1999, 9,9", "ÅngstrÖm café e\u0301"),
    *("가각 ㄱㅏ ㅋㅋㅋ ﾡￂ ㉮\u11a8 \u1100\u1161\u11a8", "שלום עולם مرحبا", "👩\u200d👩\u200d👧 🇰🇷 \ufe0f"),
    *("¨ ´ ¸ a¨b", "\x1c\x85 \xa0x\x1f", "İstanbul Straße ǅ", "ো \u09c7\u09be \u0b92\u0bd7"),
    *("x" * 1500, "가" * 1000, "\ud800", "a\udfffb \ud83d x"),
]

KOREAN = [
    "나는 어제 친구와 함께 밥을 먹었다.",
    "친구는 오늘 학교에 가서 책을 읽었다.",
    "어제 먹은 밥은 맛있었고 오늘 읽은 책은 재미있었다.",
    "학교에서 친구와 영화를 보았다. 영화는 재미있었다!",
]


@functools.cache
def read_lines(case: str) -> list[dict]:
    with lzma.open(GOLDEN / case / "lines.jsonl.xz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def clean_text(text: str, *, do_lower_case: bool = True, keep_accents: bool = False) -> str:
    """Cleans a text as the reference; white space first, as the compatibility form of "¨" and others has a space."""
    return clean_characters(" ".join(text.split()), do_lower_case=do_lower_case, keep_accents=keep_accents)


class TwoStepEncoder:
    """Clean-up in Python, then the published model as it is: the definition of the ids, digit-comma rule left out."""

    def __init__(self, options: TokenizerOptions):
        self._options = options
        self._processor = sentencepiece.SentencePieceProcessor(model_file=str(english_model_file()))

    def encode(self, texts: list[str]) -> list[list[int]]:
        clean = {"do_lower_case": self._options.do_lower_case, "keep_accents": self._options.keep_accents}
        return self._processor.Encode([clean_text(text, **clean) for text in texts], return_type=int)


def is_tie(tokenizer: AlbertTokenizer, ids: Sequence[int], others: Sequence[int]) -> bool:
    """Whether two ways to split one text have exactly equal scores, so that rounding decides between them."""
    score = tokenizer._model.processor.GetScore
    sums = [math.fsum(score(int(index)) for index in row) for row in (ids, others)]
    return sums[0] == sums[1] and tokenizer.decode(ids) == tokenizer.decode(others)


def small_tokenizer(**settings):
    """A tokenizer of 900 pieces, as SentencePiece's own trainer makes it with these settings."""
    texts = [line["lower"] for line in read_lines("T1_tokenize")[:400]]
    settings = {"vocab_size": 900, "character_coverage": 0.99, **settings}
    return AlbertTokenizer(SentencePieceModel(train_plainly(texts, **settings)))


@functools.cache
def spelling_bytes(**options):
    """A small tokenizer with byte fallback."""
    proto = small_tokenizer(byte_fallback=True)._model._model_proto
    return AlbertTokenizer(SentencePieceModel(proto, TokenizerOptions(**options)))


def train_plainly(texts, **settings):
    """A serialised model with ALBERT's special pieces, as SentencePiece's own trainer makes it."""
    writer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(texts),
        model_writer=writer,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        minloglevel=2,
        **settings,
    )
    return writer.getvalue()
