"""ALBERT's clean-up as normalisation rules inside the SentencePiece model.

SentencePiece rewrites a text with a table of rules (its charsmap), taking the longest rule that fits at each place. The
table compiled here does in that one pass what `normalization.clean_text` followed by the model's own rules does in two,
so the clean-up runs in C++, is the same in Python and in a TensorFlow graph, and offsets point into the original text.
"""

import bisect
import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import sentencepiece

from albert_tf.tokenization.folders import ASSETS
from albert_tf.tokenization.model_proto import (
    digest,
    normalizer_spec,
    read_charsmap,
    read_spec_charsmap,
    replace_charsmap,
)
from albert_tf.tokenization.normalization import clean_characters

_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_BLOCK = 256


def compile_clean_up(model_proto: bytes, *, do_lower_case: bool, keep_accents: bool) -> bytes:
    """Returns the model with the clean-up in front of its own normalisation rules.

    Args:
        model_proto: a serialised SentencePiece model as published or trained, without the clean-up.
        do_lower_case: as in `clean_text`.
        keep_accents: as in `clean_text`.

    Returns:
        The serialised model with the combined rules.

    Raises:
        ValueError: if the bytes are not a SentencePiece model.
    """
    base = read_charsmap(model_proto)
    charsmap = read_shipped(base, do_lower_case, keep_accents) or compile_charsmap(base, do_lower_case, keep_accents)
    return replace_charsmap(model_proto, charsmap)


def leaves_alone(model_proto: bytes, texts: Iterable[str]) -> bool:
    """Tells whether the rules of a model's normaliser change none of these texts, whatever follows them."""
    rules = _Rules(read_charsmap(model_proto))
    keys = sorted(rules.keys)

    def rest_of_longer_keys(start: str) -> list[str]:
        first = bisect.bisect_right(keys, start)
        return [key[len(start) :] for key in itertools.takewhile(lambda key: key.startswith(start), keys[first:])]

    @functools.cache
    def ends_alone(end: str) -> bool:
        """Whether each rule that reaches over this end of a text does what it would do without."""
        return all(
            rules.rewrite(end + rest) == rules.rewrite(end) + rules.rewrite(rest) and not rest_of_longer_keys(rest)
            for rest in rest_of_longer_keys(end)
        )

    return all(
        rules.rewrite(text) == text and all(ends_alone(text[start:]) for start in range(len(text))) for text in texts
    )


def shipped_name(base: bytes, do_lower_case: bool, keep_accents: bool) -> str:
    """Returns the name of the package's asset that holds these compiled rules, if it does.

    >>> shipped_name(b"", True, False)
    'charsmap-e3b0c442-lower.bin'
    """
    options = ("lower" if do_lower_case else "cased") + ("-accents" if keep_accents else "")
    return f"charsmap-{digest(base)[:8]}-{options}.bin"


def read_shipped(base: bytes, do_lower_case: bool, keep_accents: bool) -> bytes | None:
    """Returns the rules that the package ships compiled for the published vocabulary's normaliser, or None.

    Compiling takes about a second, and its result depends on the Unicode tables of the running Python; the shipped
    rules make ids the same under every Python.
    """
    asset = ASSETS / shipped_name(base, do_lower_case, keep_accents)
    return asset.read_bytes() if asset.is_file() else None


@functools.lru_cache(maxsize=8)
def compile_charsmap(base: bytes, do_lower_case: bool, keep_accents: bool) -> bytes:
    """Compiles the clean-up followed by the rules `base`, with the Unicode tables of the running Python."""
    clean = functools.partial(clean_characters, do_lower_case=do_lower_case, keep_accents=keep_accents)
    own = _Rules(base)
    cleaned = dict(_changed_characters(clean))
    rules = {character: own.rewrite(character) for character in own.keys if len(character) == 1}
    rules |= {character: own.rewrite(target) for character, target in cleaned.items()}
    rules = {character: target for character, target in rules.items() if character != target}
    rules |= _rules_over_neighbours(own, cleaned, clean)
    return _compile(rules)


class _Rules:
    """The rules of one charsmap: what they match, and what they make of a text."""

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
    """Yields every character that the clean-up changes, with what it becomes; white space becomes a space."""
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


def _rules_over_neighbours(own: _Rules, cleaned: dict[str, str], clean: Callable[[str], str]) -> dict[str, str]:
    """Returns the model's rules over several characters, for every way to spell them before the clean-up.

    Only rules that match cleaned text count: Hangul jamo that form a syllable, and vowel signs of some Indic scripts.
    """
    keys = [key for key in own.keys if len(key) > 1 and clean(key) == key]
    sources = defaultdict(list)
    for character, target in cleaned.items():
        sources[target].append(character)
    for character in {character for key in keys for character in key} - cleaned.keys():
        sources[character].append(character)
    spell = _speller(sources)
    targets = {key: own.rewrite(key) for key in keys}
    return {spelling: target for key, target in targets.items() for spelling in spell(key) if len(spelling) > 1}


def _speller(sources: dict[str, list[str]]) -> Callable[[str], list[str]]:
    """Returns a function that lists every text whose characters, cleaned one by one, give its argument.

    >>> sorted(_speller({"a": ["a", "A"], "b": ["b"], "ab": ["Æ"]})("ab"))
    ['Ab', 'ab', 'Æ']
    """

    @functools.cache
    def spell(key: str) -> list[str]:
        if not key:
            return [""]
        cuts = range(1, len(key) + 1)
        return [first + rest for cut in cuts for first in sources.get(key[:cut], ()) for rest in spell(key[cut:])]

    return spell


def _compile(rules: dict[str, str]) -> bytes:
    # The compiler reports its progress on stderr; the library has no way to read the level that was set before.
    sentencepiece.set_min_log_level(2)
    try:
        normalizer = sentencepiece.SentencePieceNormalizer(norm_map=sorted(rules.items()))
    finally:
        sentencepiece.set_min_log_level(0)
    return read_spec_charsmap(normalizer.serialized_normalizer_spec())
