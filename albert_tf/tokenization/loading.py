"""Loads piece models from files."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from albert_tf.files.json import read_bytes, read_json
from albert_tf.tokenization.added_tokens import AddedTokensModel
from albert_tf.tokenization.added_tokens_files import read_added_tokens
from albert_tf.tokenization.files import CONFIG_FILE, TokenizerOptions, read_config, read_options
from albert_tf.tokenization.interface import VocabularyModel
from albert_tf.tokenization.korean.kiwi import check_segmenter
from albert_tf.tokenization.korean.segmented_model import SegmentedModel
from albert_tf.tokenization.sentencepiece.huggingface_json import read_tokenizers_file
from albert_tf.tokenization.sentencepiece.model import SentencePieceModel
from albert_tf.tokenization.wordpiece.model import WordPieceModel
from albert_tf.tokenization.wordpiece.vocabulary import (
    WordPieceOptions,
    read_vocabulary,
    read_wordpiece,
    read_wordpiece_options,
)


def load_piece_model(file: Path, **arguments: Any) -> VocabularyModel | AddedTokensModel:
    """Loads a SentencePiece model, a vocabulary file or a `tokenizer.json`, the segmenter and tokens added to it.

    Args:
        file: the file; `tokenizer_config.json` may be in the same folder.
        **given: options; None means the value in `tokenizer_config.json`, else the default.

    Raises:
        ValueError: an option does not apply to the file, or the file is invalid.
    """
    model = _load(file, {name: value for name, value in arguments.items() if value is not None})
    tokens = read_added_tokens(file, len(model.pieces))
    return AddedTokensModel(model, tokens) if tokens else model


def _load(file: Path, arguments: dict[str, Any]) -> VocabularyModel:
    if file.suffix == ".txt":
        return _wordpiece(file, read_vocabulary(file), {}, arguments)
    if file.suffix != ".json":
        return _sentencepiece(file, read_bytes(file), {}, arguments)
    content = read_json(file, cure="save the tokenizer again")
    model = content.get("model")
    kind = model.get("type") if isinstance(model, dict) else None
    if kind == "Unigram":
        return _sentencepiece(file, *read_tokenizers_file(content, file), arguments)
    if kind == "WordPiece":
        return _wordpiece(file, *read_wordpiece(content, file), arguments)
    raise ValueError(
        f"{file} has a model of type {kind!r}; only Unigram and WordPiece are supported. Use the published "
        "spiece.model or vocab.txt."
    )


def _sentencepiece(
    file: Path, model_proto: bytes, recorded: dict[str, Any], arguments: dict[str, Any]
) -> VocabularyModel:
    _check_names(TokenizerOptions, arguments, f"a SentencePiece model, {file}")
    options, config = read_options(file.parent, recorded, **arguments), read_config(file.parent / CONFIG_FILE)
    if config.get("segmenter") is None:
        return SentencePieceModel(model_proto, options, source=str(file))
    check_segmenter(config["segmenter"], config.get("segmenter_version"))
    return SegmentedModel(model_proto, options, source=str(file))


def _wordpiece(
    file: Path, pieces: tuple[str, ...], recorded: dict[str, Any], arguments: dict[str, Any]
) -> VocabularyModel:
    _check_names(WordPieceOptions, arguments, f"a vocabulary file, {file}")
    options = read_wordpiece_options(file.parent, pieces, recorded, **arguments)
    return WordPieceModel(pieces, options, source=str(file))


def _check_names(kind: type, arguments: dict[str, Any], file: str) -> None:
    unknown = sorted(arguments.keys() - {field.name for field in fields(kind)})
    if unknown:
        raise ValueError(f"The options must apply to the kind of vocabulary. Received: `{unknown[0]}` for {file}.")
