"""Compiles ALBERT's clean-up into the normalisation rules of a SentencePiece model.

SentencePiece normalises text by longest match in a table of rules, its charsmap. The table compiled here combines the
clean-up of single characters in the reference, and the model's own rules. It then runs in C++, is the same in Python
and in TensorFlow graphs, and offsets refer to the original text. Two things differ from the clean-up of whole texts: a
capital sigma at the end of a Greek word becomes "σ", not "ς"; and a combining mark between two parts of a syllable
(Hangul jamo, some Indic vowel signs) prevents their composition.
"""

import functools
import hashlib
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import sentencepiece

from albert_tf.tokenization.files import ASSETS
from albert_tf.tokenization.sentencepiece.proto import (
    normalizer_spec,
    read_charsmap,
    read_spec_charsmap,
    replace_charsmap,
)

_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_BLOCK = 256
_WORD = 4
_ENDS_KEY, _IS_VALUE = 1 << 8, 1 << 31
# Published models have rules of up to 20 bytes, and 30,000 nodes.
_MAX_RULE_BYTES, _MAX_RULES = 256, 1 << 20


def compile_clean_up(model_proto: bytes, *, do_lower_case: bool, keep_accents: bool) -> bytes:
    """Returns the serialised model with the reference's clean-up before its own normalisation rules.

    Raises:
        ValueError: `model_proto` is not a SentencePiece model.
    """
    base = read_charsmap(model_proto)
    charsmap = read_shipped(base, do_lower_case, keep_accents)
    if charsmap is None:
        check_charsmap(base)
        charsmap = compile_charsmap(base, do_lower_case, keep_accents)
    return replace_charsmap(model_proto, charsmap)


def clean_characters(text: str, *, do_lower_case: bool, keep_accents: bool) -> str:
    """Cleans single characters as `preprocess_text` in google-research/albert, tokenization.py, without white space.

    >>> clean_characters("É  a", do_lower_case=True, keep_accents=False)
    'e  a'
    """
    if not keep_accents:
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(character for character in decomposed if not unicodedata.combining(character))
    return text.lower() if do_lower_case else text


def check_charsmap(charsmap: bytes) -> None:
    """Raises ValueError for rules with which SentencePiece would read out of bounds or loop forever.

    A charsmap consists of the size of a trie, the trie, and zero-terminated targets. The trie is a double array of
    Darts-clone: the child of node i for byte b is `i ^ offset ^ b`, and `i ^ offset` has the position of the target of
    a key that ends at i.
    """
    if not charsmap:
        return
    size, targets = int.from_bytes(charsmap[:_WORD], "little"), len(charsmap) - _WORD
    if not 0 < size < targets or size % (_BLOCK * _WORD) or charsmap[-1]:
        raise ValueError("its normalisation rules are damaged")
    units = np.frombuffer(charsmap, "<u4", size // _WORD, _WORD).astype(np.int64)
    bases = np.arange(len(units)) ^ (units >> 10 << (units >> 6 & 8))
    labels = units & (_IS_VALUE | 0xFF)
    # All potential children, in order of their parent's base.
    parents = np.where((labels > 0) & (labels < _BLOCK), np.arange(len(units)) ^ labels, len(units))
    order = np.argsort(parents, kind="stable")
    parents, nodes, count = parents[order], np.zeros(1, np.int64), 0
    for _ in range(_MAX_RULE_BYTES):
        reached = bases[nodes]
        if (reached >= len(units)).any():
            break
        values = units[reached[(units[nodes] & _ENDS_KEY) > 0]] & ~_IS_VALUE
        first, end = np.searchsorted(parents, reached), np.searchsorted(parents, reached, side="right")
        count += (end - first).sum()
        if (values >= targets - size).any() or count > _MAX_RULES:
            break
        nodes = np.concatenate([order[start:stop] for start, stop in zip(first, end) if start < stop] or [order[:0]])
        if not len(nodes):
            return
    raise ValueError("its normalisation rules are damaged")


def changes(model_proto: bytes, texts: Iterable[str]) -> bool:
    """Whether a model's normaliser changes any of the texts."""
    rules = _Rules(read_charsmap(model_proto))
    return any(rules.rewrite(text) != text for text in texts)


def read_shipped(base: bytes, do_lower_case: bool, keep_accents: bool) -> bytes | None:
    """Returns the precompiled rules for the published vocabulary's normaliser, or None.

    Compilation takes about a second, and depends on Python's Unicode version; precompiled rules give the same ids with
    every version.
    """
    options = ("lower" if do_lower_case else "cased") + ("-accents" if keep_accents else "")
    asset = ASSETS / f"charsmap-{hashlib.sha256(base).hexdigest()[:8]}-{options}.bin"
    return asset.read_bytes() if asset.is_file() else None


@functools.lru_cache(maxsize=8)
def compile_charsmap(base: bytes, do_lower_case: bool, keep_accents: bool) -> bytes:
    """Compiles the clean-up followed by the rules `base`, with the Unicode version of the running Python."""
    clean = functools.partial(clean_characters, do_lower_case=do_lower_case, keep_accents=keep_accents)
    model_rules = _Rules(base)
    cleaned = dict(_changed_characters(clean))
    rules = {character: model_rules.rewrite(character) for character in model_rules.keys if len(character) == 1}
    rules |= {character: model_rules.rewrite(target) for character, target in cleaned.items()}
    rules = {character: target for character, target in rules.items() if character != target}
    rules |= _rules_over_neighbours(model_rules, cleaned, clean)
    return _compile(rules)


class _Rules:
    """The rules of a charsmap."""

    def __init__(self, charsmap: bytes):
        self._normalizer = None
        if charsmap:
            self._normalizer = sentencepiece.SentencePieceNormalizer(
                normalizer_spec=normalizer_spec(charsmap),
                add_dummy_prefix=False,
                escape_whitespaces=False,
                remove_extra_whitespaces=False,
            )

    @functools.cached_property
    def keys(self) -> list[str]:
        return [key for key, _ in self._normalizer.Decompile()] if self._normalizer else []

    def rewrite(self, text: str) -> str:
        return self._normalizer.Normalize(text) if self._normalizer else text


def _changed_characters(clean: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Yields every character that the clean-up changes, and its replacement; white space becomes a space."""
    for start in range(0, _LAST_CODE_POINT + 1, _BLOCK):
        if start in _SURROGATES:
            continue
        block = "".join(map(chr, range(start, start + _BLOCK)))
        if clean(block) == block and len(block.split()) == 1:
            continue
        for character in block:
            target = " " if character.isspace() else clean(character)
            if target != character:
                yield character, target


def _rules_over_neighbours(model_rules: _Rules, cleaned: dict[str, str], clean: Callable[[str], str]) -> dict[str, str]:
    """Returns the model's rules for several characters, with every text that the clean-up maps to their keys.

    Only rules that match cleaned text matter: Hangul jamo that form a syllable, and vowel signs of some Indic scripts.
    """
    keys = [key for key in model_rules.keys if len(key) > 1 and clean(key) == key]
    sources = defaultdict(list)
    for character, target in cleaned.items():
        sources[target].append(character)
    for character in {character for key in keys for character in key} - cleaned.keys():
        sources[character].append(character)

    @functools.cache
    def expand(key: str) -> list[str]:
        """Lists all texts whose characters, cleaned individually, give the key."""
        if not key:
            return [""]
        cuts = [cut for cut in range(1, len(key) + 1) if key[:cut] in sources]
        _check_count(sum(len(sources[key[:cut]]) * len(expand(key[cut:])) for cut in cuts))
        return [first + rest for cut in cuts for first in sources[key[:cut]] for rest in expand(key[cut:])]

    rules: dict[str, str] = {}
    for key in keys:
        rules |= dict.fromkeys((source for source in expand(key) if len(source) > 1), model_rules.rewrite(key))
        _check_count(len(rules))
    return rules


def _check_count(count: int) -> None:
    if count > _MAX_RULES:
        raise ValueError("its normalisation rules match too many texts")


def _compile(rules: dict[str, str]) -> bytes:
    # Silences the compiler's progress messages; the previous level cannot be queried.
    sentencepiece.set_min_log_level(2)
    try:
        normalizer = sentencepiece.SentencePieceNormalizer(norm_map=sorted(rules.items()))
    finally:
        sentencepiece.set_min_log_level(0)
    return read_spec_charsmap(normalizer.serialized_normalizer_spec())
