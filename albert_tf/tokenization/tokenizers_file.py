"""`tokenizer.json`, the whole of a SentencePiece tokenizer as Hugging Face's tokenizers library reads it.

Without this file transformers makes one of `spiece.model` itself, without the digit-comma rule, and with a word start
behind every user-defined piece, of which the published vocabulary has eight: ( ) " - . – £ €.
"""

import base64
import json
from collections.abc import Collection, Mapping
from typing import Any

from albert_tf.tokenization.digit_comma import WORD_START
from albert_tf.tokenization.piece_model import SpecialPieceIds

TOKENIZERS_FILE = "tokenizer.json"

# Pieces that the digit-comma rule splits are made so unlikely that text is split into others.
_PENALTY = 100.0


def tokenizers_file(
    scores: Mapping[str, float],
    split: Collection[int],
    charsmap: bytes,
    special: SpecialPieceIds,
    *,
    composes: bool = False,
) -> bytes:
    """Returns the content of the file, for a unigram vocabulary.

    Args:
        scores: the pieces in order of their ids, with what each adds to the score of a split.
        split: the ids that the digit-comma rule replaces.
        charsmap: the compiled rules of the clean-up.
        special: the ids of the special pieces. Unlike ours, that library takes a literal "[MASK]" in a text for one.
        composes: put loose Hangul letters together behind the rules, which that library applies to one character at a
            time. (It then also puts together the rare letters with two marks that the rules leave apart: "ê" + U+0301.)
    """
    pieces = list(scores)
    vocabulary = [[piece, score - _PENALTY * (index in split)] for index, (piece, score) in enumerate(scores.items())]
    special_ids = sorted((special.pad, special.unk, special.cls, special.sep, special.mask))
    rules = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}
    word_starts = {"type": "Metaspace", "replacement": WORD_START, "prepend_scheme": "always", "split": True}
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(index, pieces[index], index == special.mask) for index in special_ids],
        "normalizer": {"type": "Sequence", "normalizers": [rules, {"type": "NFC"}]} if composes else rules,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, word_starts]},
        "post_processor": _template(pieces[special.cls], pieces[special.sep], special),
        "decoder": word_starts,
        "model": {"type": "Unigram", "unk_id": special.unk, "vocab": vocabulary, "byte_fallback": False},
    }
    return json.dumps(content, ensure_ascii=False).encode()


def _added(index: int, piece: str, is_mask: bool) -> dict[str, Any]:
    return {
        "id": index,
        "content": piece,
        "single_word": False,
        "lstrip": is_mask,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }


def _template(cls: str, sep: str, special: SpecialPieceIds) -> dict[str, Any]:
    """[CLS] text [SEP] pair [SEP], the last two of type 1."""

    def piece(name: str, token_type: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": token_type}}

    def text(name: str, token_type: int) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": token_type}}

    single = [piece(cls, 0), text("A", 0), piece(sep, 0)]
    ids = {cls: special.cls, sep: special.sep}
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, text("B", 1), piece(sep, 1)],
        "special_tokens": {name: {"id": name, "ids": [index], "tokens": [name]} for name, index in ids.items()},
    }
