"""`tokenizer.json`, a complete SentencePiece tokenizer in the format of Hugging Face's tokenizers library.

Without this file transformers converts `spiece.model`, without the digit-comma rule, and with a word start after every
user-defined piece, of which the published vocabulary has eight: ( ) " - . – £ €.
"""

import base64
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

from albert_tf.tokenization.interface import SpecialPieceIds
from albert_tf.tokenization.sentencepiece.digit_comma import WORD_START
from albert_tf.tokenization.sentencepiece.proto import unigram_model

# Lowers the scores of pieces that the digit-comma rule splits, so that they are not used.
_PENALTY = 100.0
# Normalizers of ALBERT in transformers. "Replace" turns two quotes into `"`, which `spiece.model` does not do; "NFC"
# and "NFKD" are part of the rules and of dropping accents.
_NORMALIZERS = {"Replace", "NFC", "NFKD", "StripAccents", "Lowercase", "Precompiled"}
_PRE_TOKENIZERS = {"WhitespaceSplit", "Metaspace"}


def tokenizers_file(
    scores: Mapping[str, float],
    split: Collection[int],
    charsmap: bytes,
    special: SpecialPieceIds,
    *,
    composes: bool = False,
) -> bytes:
    """Returns the content of the file for a unigram vocabulary.

    Args:
        scores: scores of pieces, in order of their ids.
        split: the ids that the digit-comma rule splits.
        charsmap: the compiled rules of the clean-up.
        special: the ids of the special pieces. Unlike here, a literal "[MASK]" in a text becomes its id.
        composes: whether to compose adjacent Hangul jamo after the rules, which that library applies to single
            characters. (It then also composes rare letters with two marks that the rules do not: "ê" + U+0301.)
    """
    pieces = list(scores)
    vocabulary = [[piece, score - _PENALTY * (index in split)] for index, (piece, score) in enumerate(scores.items())]
    rules = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}
    word_starts = {"type": "Metaspace", "replacement": WORD_START, "prepend_scheme": "always", "split": True}
    return tokenizer_json(
        pieces,
        special,
        normalizer={"type": "Sequence", "normalizers": [rules, {"type": "NFC"}]} if composes else rules,
        pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, word_starts]},
        decoder=word_starts,
        model={"type": "Unigram", "unk_id": special.unk, "vocab": vocabulary, "byte_fallback": False},
    )


def read_tokenizers_file(content: dict[str, Any], file: Path) -> tuple[bytes, dict[str, bool]]:
    """Converts a `tokenizer.json` with a unigram model to a SentencePiece model and options of its normalizer.

    Transformers 5 saves tokenizers as this file only.

    Raises:
        ValueError: the file is damaged, or its normalizer is not supported.
    """
    try:
        normalizers = list(_flatten(content["normalizer"], "normalizers"))
        steps = list(_flatten(content["pre_tokenizer"], "pretokenizers"))
        # Without a mark at the first word ids differ.
        splits = {str(step) if step.get("prepend_scheme") == "never" else step["type"] for step in steps}
        kinds = {normalizer["type"] for normalizer in normalizers}
        rules = [one["precompiled_charsmap"] for one in normalizers if one["type"] == "Precompiled"]
        charsmap = b"".join(map(base64.b64decode, rules))
        model = content["model"]
        special = {token["id"]: token["special"] for token in content["added_tokens"]}
        pieces = [(str(piece), float(score), special.get(index)) for index, (piece, score) in enumerate(model["vocab"])]
        model_proto = unigram_model(pieces, int(model["unk_id"]), bool(model.get("byte_fallback")), charsmap)
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise ValueError(
            f"{file} is no tokenizer of the tokenizers library ({type(error).__name__}: {error}); save it again."
        ) from None
    if foreign := sorted(map(str, (kinds - _NORMALIZERS) | (splits - _PRE_TOKENIZERS))):
        raise ValueError(
            f"{file} has the step {foreign[0]}, which cannot be reproduced; use the spiece.model that the model "
            "was published with."
        )
    return model_proto, {"do_lower_case": "Lowercase" in kinds, "keep_accents": "StripAccents" not in kinds}


def _flatten(step: dict[str, Any] | None, key: str) -> Iterator[dict[str, Any]]:
    """The steps of a normalizer or pre-tokenizer; a sequence has its own under `key`."""
    if step is not None and step["type"] == "Sequence":
        for part in step[key]:
            yield from _flatten(part, key)
    elif step is not None:
        yield step


def tokenizer_json(pieces: Sequence[str], special: SpecialPieceIds, **steps: dict[str, Any]) -> bytes:
    """The content of a `tokenizer.json` with these steps: [CLS] text [SEP] pair [SEP], the last two of type 1.

    White space before a mask is dropped.
    """
    flags = {"single_word": False, "rstrip": False, "normalized": False, "special": True}
    added = [
        {"id": index, "content": pieces[index], "lstrip": index == special.mask, **flags}
        for index in sorted(set(astuple(special)))
    ]
    ids = {pieces[index]: index for index in (special.cls, special.sep)}
    cls, sep = ({"SpecialToken": {"id": piece, "type_id": 0}} for piece in ids)
    single = [cls, {"Sequence": {"id": "A", "type_id": 0}}, sep]
    second = [{"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": pieces[special.sep], "type_id": 1}}]
    template = {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, *second],
        "special_tokens": {piece: {"id": piece, "ids": [index], "tokens": [piece]} for piece, index in ids.items()},
    }
    frame = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "post_processor": template}
    return json.dumps(frame | steps, ensure_ascii=False).encode()
