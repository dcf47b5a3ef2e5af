"""Checks of a checkpoint that somebody has downloaded: whole, of its config, finite, with its vocabulary, as published.

Letters: L sequence, E embedding, D hidden, V vocabulary.
"""

import dataclasses
import pathlib
import re
import string
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from albert_tf import checkpoints
from albert_tf.config import AlbertConfig
from albert_tf.export.published import PUBLISHED, PublishedModel, PublishedSlice, PublishedText
from albert_tf.models import (
    AlbertEncoder,
    AlbertForMaskedLM,
    AlbertForPreTraining,
    AlbertForQuestionAnswering,
    AlbertForTokenClassification,
)
from albert_tf.models.base import AlbertBase
from albert_tf.tokenization import AlbertTokenizer, vocabulary_places

SPECIAL_IDS = {"<pad>": 0, "<unk>": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
SAMPLE = "The Quick Brown Fox Jumps Over the Lazy Dog, and 3 More."
# The smallest model that has a head's variables, by the part of a checkpoint that the head is.
_MODEL_OF_HEAD: dict[str, type[AlbertBase]] = {
    "masked_lm": AlbertForMaskedLM,
    "sentence_order": AlbertForPreTraining,
    "classifier": AlbertForTokenClassification,
    "qa_span": AlbertForQuestionAnswering,
    "qa_beam": AlbertForQuestionAnswering,
}
# What makes the shape of a model; rates of dropout and the like may differ between files of the same weights.
_SHAPE = (
    *("vocab_size", "embedding_size", "hidden_size", "num_hidden_layers", "num_hidden_groups", "inner_group_num"),
    *("num_attention_heads", "intermediate_size", "max_position_embeddings", "type_vocab_size", "share"),
)


@dataclasses.dataclass(frozen=True)
class Check:
    """What one check came to.

    Attributes:
        name: what was checked.
        passed: bool.
        finding: one sentence: what was found, and where it failed, the cure.
    """

    name: str
    passed: bool
    finding: str


def verify(path: str | pathlib.Path, published: Sequence[PublishedModel] = PUBLISHED) -> list[Check]:
    """Checks a checkpoint of any kind and its vocabulary; what is wrong is a finding, never an error.

    Args:
        path: whatever `from_pretrained` takes.
        published: models whose outputs are known. A checkpoint of the shape of one is compared with it. Where the
            outputs differ that is a failure only if the folder bears its name and holds no head of another task:
            everything else may have been trained further.

    Returns:
        list of Check: `files`, and where they can be read `weights`, `values`, `parameters`; `vocabulary`, and where
        there is one `special pieces` and `capital letters`; `published` and `published text` where there is something
        to compare with.
    """
    path = pathlib.Path(path)
    try:
        checkpoint = _read(path)
    except (ValueError, OSError) as error:
        return [Check("files", False, _sentence(error)), *_vocabulary_checks(path, None)]
    count = sum(array.size for array in checkpoint.arrays.values())
    return [
        Check("files", True, f"{len(checkpoint.arrays)} tensors with {count:,} values are whole."),
        _attempt("weights", lambda: load_wholly(checkpoint)),
        _attempt("values", lambda: _check_values(checkpoint)),
        _attempt("parameters", lambda: _check_parameters(checkpoint)),
        *_vocabulary_checks(path, checkpoint.config.vocab_size),
        *_published_checks(path, checkpoint, published),
    ]


def _attempt(name: str, check: Callable[[], str]) -> Check:
    try:
        return Check(name, True, check())
    except (ValueError, OSError) as error:
        return Check(name, False, _sentence(error))


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split())


def _read(path: pathlib.Path) -> checkpoints.Checkpoint:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # values that are not finite have a check of their own
        return checkpoints.read(path)


def _parts(checkpoint: checkpoints.Checkpoint) -> set[str]:
    return {variable.split("/", 1)[0] for variable in checkpoint.arrays}


# === Weights ===


def load_wholly(checkpoint: checkpoints.Checkpoint) -> str:
    """Makes each model that the checkpoint has a part for; raises where a tensor is missing, left over or misshapen."""
    checkpoints.refuse_another_size(checkpoint)
    heads = _parts(checkpoint) - {"encoder"}
    _filled(AlbertEncoder, checkpoint, add_pooling_layer="encoder/pooler/kernel" in checkpoint.arrays)
    for head in sorted(heads):
        _filled(_MODEL_OF_HEAD[head], checkpoint)
    return f"Every tensor has its place: encoder{''.join(f', {head}' for head in sorted(heads))}."


def _filled(kind: type[AlbertBase], checkpoint: checkpoints.Checkpoint, **arguments) -> AlbertBase:
    model = kind(checkpoint.config, **{**kind.settings_from_file(dict(checkpoint.settings)), **arguments})
    checkpoints.assign(checkpoint, model.variables_by_path())
    return model


def _check_values(checkpoint: checkpoints.Checkpoint) -> str:
    wrong = sorted(variable for variable, array in checkpoint.arrays.items() if not np.isfinite(array).all())
    if wrong:
        more = f" and {len(wrong) - 4} more" if len(wrong) > 4 else ""
        raise ValueError(
            f"Every weight must be a finite number. Received: NaN or infinity in {', '.join(wrong[:4])}{more}; "
            "download the checkpoint again, or take an earlier one."
        )
    return "Every weight is a finite number."


def _check_parameters(checkpoint: checkpoints.Checkpoint) -> str:
    counts, parts = checkpoint.config.parameter_counts(), _parts(checkpoint)
    expected = counts.encoder - (0 if "encoder/pooler/kernel" in checkpoint.arrays else counts.pooler)
    expected += counts.masked_lm_head if "masked_lm" in parts else 0
    expected += counts.sentence_order_head if "sentence_order" in parts else 0
    of_config = {"encoder", "masked_lm", "sentence_order"}
    found = sum(array.size for variable, array in checkpoint.arrays.items() if variable.split("/", 1)[0] in of_config)
    if found != expected:
        raise ValueError(
            f"The parameters must be as many as the config makes. Received: {found:,} beside {expected:,} of the "
            "config; take the config that the weights were made with."
        )
    return f"{found:,} parameters, as the config makes them."


# === Vocabulary ===


def _vocabulary_checks(path: pathlib.Path, vocab_size: int | None) -> list[Check]:
    try:
        tokenizer = _find_tokenizer(path)
        if vocab_size is not None:
            tokenizer.check_fits(vocab_size)
    except (ValueError, OSError) as error:
        return [Check("vocabulary", False, _sentence(error))]
    return [
        Check("vocabulary", True, f"{tokenizer.vocab_size:,} pieces{', as the config says' if vocab_size else ''}."),
        _attempt("special pieces", lambda: _check_special_pieces(tokenizer)),
        _attempt("capital letters", lambda: _check_capitals(tokenizer)),
    ]


def _find_tokenizer(path: pathlib.Path) -> AlbertTokenizer:
    """The vocabulary beside a checkpoint, or in the folders where TF Hub and KerasHub keep it."""
    places = vocabulary_places(path)
    for folder in places:
        files = [file for pattern in ("*.model", "*.spm", "*vocab*.txt") for file in sorted(folder.glob(pattern))]
        if files:
            return AlbertTokenizer.from_pretrained(files[0] if len(files) == 1 else folder)
    raise ValueError(
        f"A checkpoint must have its vocabulary beside it. Received: {places[0]} without one; add the file that it was "
        "published with, such as spiece.model, 30k-clean.model or vocab.txt."
    )


def _check_special_pieces(tokenizer: AlbertTokenizer) -> str:
    if "<unk>" not in tokenizer.pieces:  # of a list of WordPieces, where each has them at ids of its own
        names = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
        return ", ".join(f"{name} {tokenizer.pieces.index(name)}" for name in names if name in tokenizer.pieces) + "."
    wrong = {piece: i for piece, i in SPECIAL_IDS.items() if tokenizer.pieces[i : i + 1] != (piece,)}
    if wrong:
        places = ", ".join(f"{piece} at {tokenizer.pieces.index(piece)} for {i}" for piece, i in wrong.items())
        raise ValueError(
            f"ALBERT's special pieces must have the ids 0 to 4. Received: {places}; take the vocabulary that the "
            "weights were made with."
        )
    return ", ".join(f"{piece} {i}" for piece, i in SPECIAL_IDS.items()) + "."


def _check_capitals(tokenizer: AlbertTokenizer) -> str:
    """A capital must be known where its small letter is: otherwise the text is not lower-cased, but has to be."""
    unknown = tokenizer.unk_token_id
    lost = [
        letter
        for letter in string.ascii_uppercase
        if unknown in tokenizer.encode(letter) and unknown not in tokenizer.encode(letter.lower())
    ]
    if lost:
        raise ValueError(
            f"Capital letters must not become unknown. Received: {''.join(lost)} unknown, and "
            f"{_unknown_rate(tokenizer):.0%} of a sample sentence; load the tokenizer with do_lower_case=True, and "
            "say so in its tokenizer_config.json."
        )
    return f"None becomes unknown, and {_unknown_rate(tokenizer):.0%} of a sample sentence does."


def _unknown_rate(tokenizer: AlbertTokenizer) -> float:
    return float(np.mean(np.equal(tokenizer.encode(SAMPLE), tokenizer.unk_token_id)))


# === Published outputs ===


def _published_checks(
    path: pathlib.Path, checkpoint: checkpoints.Checkpoint, published: Sequence[PublishedModel]
) -> list[Check]:
    checks = []
    for model in published:
        if check := _check_published(path, checkpoint, model):
            checks.append(check)
            checks += [_attempt("published text", lambda text=text: _check_text(path, text)) for text in model.texts]
    return checks


def _check_text(path: pathlib.Path, published: PublishedText) -> str:
    found = tuple(_find_tokenizer(path)([published.text])["input_ids"][0].tolist())
    if found != published.input_ids:
        raise ValueError(
            f"{published.text!r} must have the published ids {published.input_ids}. Received: {found}; take the "
            "vocabulary that the weights were published with."
        )
    return f"{published.text!r} has its published ids."


def _check_published(path: pathlib.Path, checkpoint: checkpoints.Checkpoint, model: PublishedModel) -> Check | None:
    """None where the checkpoint neither is this model nor claims to be."""
    named = _bears_name(path, model) and _parts(checkpoint) <= {"encoder", "masked_lm", "sentence_order"}
    if not named and not _has_shape(checkpoint.config, model.config):
        return None
    check = _attempt("published", lambda: _compare(checkpoint, model))
    return check if named or check.passed else None


def _bears_name(path: pathlib.Path, model: PublishedModel) -> bool:
    """Whether the folder or one that holds it ends on a name: download tools make up to three folders inside."""
    folders = [re.sub(r"[^a-z0-9]+", "_", part.lower()) for part in path.resolve().parts[-4:]]
    return any(folder.endswith(name) for folder in folders for name in model.names)


def _has_shape(config: AlbertConfig, other: AlbertConfig) -> bool:
    return all(getattr(config, name) == getattr(other, name) for name in _SHAPE)


def _compare(checkpoint: checkpoints.Checkpoint, model: PublishedModel) -> str:
    name = model.names[0]
    differing = [field for field in _SHAPE if getattr(checkpoint.config, field) != getattr(model.config, field)]
    if differing:
        shown = ", ".join(f"{field}={getattr(checkpoint.config, field)}" for field in differing)
        raise ValueError(f"{name} must have its published config. Received: {shown}; download it again.")
    parts = _parts(checkpoint) | ({"pooler"} if "encoder/pooler/kernel" in checkpoint.arrays else set())
    slices = [item for item in model.slices if item.part in parts]
    differences = [_difference(checkpoint, item) for item in slices]
    for item, difference in zip(slices, differences, strict=True):
        if not difference <= item.tolerance:  # NaN is no agreement
            raise ValueError(
                f"{name} must give its published {item.output}. Received: a difference of {difference:.1e} where "
                f"{item.tolerance:.0e} is allowed; download the weights again."
            )
    return f"{len(slices)} published outputs of {name} are reproduced, within {max(differences, default=0.0):.1e}."


def _difference(checkpoint: checkpoints.Checkpoint, item: PublishedSlice) -> float:
    if item.part == "masked_lm":
        model = _filled(AlbertForMaskedLM, checkpoint)
    else:
        model = _filled(AlbertEncoder, checkpoint, add_pooling_layer=item.part == "pooler")
    inputs = {"input_ids": np.array([item.input_ids], np.int32)}  # [1, L]
    if item.attention_mask:
        inputs["attention_mask"] = np.array([item.attention_mask], np.int32)
    found = np.asarray(model(inputs)[item.output])[0][item.place]
    return float(np.max(np.abs(found - np.array(item.expected))))
