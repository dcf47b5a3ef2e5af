"""Checks of a downloaded checkpoint: files, shapes, values, vocabulary, and published outputs.

Letters: L sequence, E embedding, D hidden, V vocabulary.
"""

import dataclasses
import pathlib
import re
import string
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from albert_tf import checkpoints, models
from albert_tf.checkpoints.checkpoint import reject_unknown
from albert_tf.checkpoints.names import joined
from albert_tf.config import AlbertConfig
from albert_tf.files.hub import model_folder
from albert_tf.models import AlbertEncoder, AlbertForMaskedLM
from albert_tf.models.base import AlbertBase
from albert_tf.tasks.table import HEADS, smallest_task
from albert_tf.tokenization import AlbertTokenizer, vocabulary_places
from albert_tf.verify.published import PUBLISHED, PublishedModel, PublishedSlice, PublishedText

SPECIAL_IDS = {"<pad>": 0, "<unk>": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
SAMPLE = "The Quick Brown Fox Jumps Over the Lazy Dog, and 3 More."
# Other fields, such as dropout rates, may differ between files with the same weights.
_SHAPE_FIELDS = (
    *("vocab_size", "embedding_size", "hidden_size", "num_hidden_layers", "num_hidden_groups", "inner_group_num"),
    *("num_attention_heads", "intermediate_size", "max_position_embeddings", "type_vocab_size", "share"),
)


@dataclasses.dataclass(frozen=True)
class Check:
    """Result of one check.

    Attributes:
        name: what was checked.
        passed: bool.
        finding: one sentence with the result and, if the check failed, the cure.
    """

    name: str
    passed: bool
    finding: str


def verify(path: str | pathlib.Path, published: Sequence[PublishedModel] = PUBLISHED) -> list[Check]:
    """Checks a checkpoint of any format and its vocabulary. Problems are findings, not exceptions.

    Args:
        path: as for `from_pretrained`.
        published: models with known outputs. A checkpoint with the shapes of one of them is compared with it. Different
            outputs are only a failure if the folder has the model's name and no task head; otherwise the weights may
            have been fine-tuned.

    Returns:
        list of Check: `files`; `weights`, `values` and `parameters` if the files can be read; `vocabulary`, and
        `special pieces` and `capital letters` if there is one; `published` and `published text` for known models.
    """
    try:
        path = model_folder(path)
        checkpoint = _read(path)
    except (ValueError, OSError) as error:
        return [Check("files", False, _sentence(error)), *_vocabulary_checks(pathlib.Path(path), None)]
    count = sum(array.size for array in checkpoint.arrays.values())
    return [
        Check("files", True, f"{len(checkpoint.arrays)} tensors with {count:,} values can be read."),
        _attempt("weights", lambda: check_weights(checkpoint)),
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
        warnings.simplefilter("ignore", UserWarning)  # non-finite values are a separate check
        return checkpoints.read(path)


# === Weights ===


def check_weights(checkpoint: checkpoints.Checkpoint) -> str:
    """Builds each model that the checkpoint has a head for; raises for missing, unused or misshapen tensors."""
    checkpoints.check_size(checkpoint)
    heads = sorted(checkpoint.parts - {"encoder"})
    reject_unknown(checkpoint.source, set(heads) - HEADS)
    _filled(AlbertEncoder, checkpoint, add_pooling_layer="encoder/pooler/kernel" in checkpoint.arrays)
    for head in heads:
        _filled(getattr(models, smallest_task(head).model), checkpoint)
    return f"Every tensor is used: {', '.join(['encoder', *heads])}."


def _filled(kind: type[AlbertBase], checkpoint: checkpoints.Checkpoint, **arguments) -> AlbertBase:
    model = kind(checkpoint.config, **{**kind.settings_from_file(dict(checkpoint.settings)), **arguments})
    checkpoints.assign(checkpoint, model.variables_by_path())
    return model


def _check_values(checkpoint: checkpoints.Checkpoint) -> str:
    wrong = sorted(variable for variable, array in checkpoint.arrays.items() if not np.isfinite(array).all())
    if wrong:
        raise ValueError(f"NaN or infinity in {joined(wrong)}; download the checkpoint again or use an earlier one.")
    return "All values are finite."


def _check_parameters(checkpoint: checkpoints.Checkpoint) -> str:
    counts, parts = checkpoint.config.parameter_counts(), checkpoint.parts
    expected = counts.encoder - (0 if "encoder/pooler/kernel" in checkpoint.arrays else counts.pooler)
    expected += counts.masked_lm_head if "masked_lm" in parts else 0
    expected += counts.sentence_order_head if "sentence_order" in parts else 0
    of_config = {"encoder", "masked_lm", "sentence_order"}
    found = sum(array.size for variable, array in checkpoint.arrays.items() if variable.split("/", 1)[0] in of_config)
    if found != expected:
        raise ValueError(
            f"The weights have {found:,} parameters, but the config describes {expected:,}; use the config of these "
            "weights."
        )
    return f"{found:,} parameters, as in the config."


# === Vocabulary ===


def _vocabulary_checks(path: pathlib.Path, vocab_size: int | None) -> list[Check]:
    try:
        tokenizer = _find_tokenizer(path)
        if vocab_size is not None:
            tokenizer.check_fits(vocab_size)
    except (ValueError, OSError) as error:
        return [Check("vocabulary", False, _sentence(error))]
    return [
        Check("vocabulary", True, f"{tokenizer.vocab_size:,} pieces{', as in the config' if vocab_size else ''}."),
        _attempt("special pieces", lambda: _check_special_pieces(tokenizer)),
        _attempt("capital letters", lambda: _check_capitals(tokenizer)),
    ]


def _find_tokenizer(path: pathlib.Path) -> AlbertTokenizer:
    """The tokenizer of a checkpoint, also in the subfolders of TF Hub and KerasHub."""
    folders = vocabulary_places(path)
    for folder in folders:
        files = [
            file
            for pattern in ("*.model", "*.spm", "*vocab*.txt", "tokenizer.json")
            for file in sorted(folder.glob(pattern))
        ]
        if files:
            return AlbertTokenizer.from_pretrained(files[0] if len(files) == 1 else folder)
    raise ValueError(
        f"{folders[0]} has no vocabulary; add the file that was published with the weights, such as spiece.model, "
        "30k-clean.model or vocab.txt."
    )


def _check_special_pieces(tokenizer: AlbertTokenizer) -> str:
    if "<unk>" not in tokenizer.pieces:  # WordPiece: special tokens may have any id
        names = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
        return ", ".join(f"{name} {tokenizer.pieces.index(name)}" for name in names if name in tokenizer.pieces) + "."
    wrong = {piece: i for piece, i in SPECIAL_IDS.items() if tokenizer.pieces[i : i + 1] != (piece,)}
    if wrong:
        found = ", ".join(f"{piece} at {tokenizer.pieces.index(piece)} for {i}" for piece, i in wrong.items())
        raise ValueError(
            f"ALBERT's special pieces have the ids 0 to 4, but this vocabulary has {found}; use the vocabulary that "
            "the weights were trained with."
        )
    return ", ".join(f"{piece} {i}" for piece, i in SPECIAL_IDS.items()) + "."


def _check_capitals(tokenizer: AlbertTokenizer) -> str:
    """If a lower-case letter is known but its capital is not, text should be lower-cased."""
    unknown = tokenizer.unk_token_id
    lost = [
        letter
        for letter in string.ascii_uppercase
        if unknown in tokenizer.encode(letter) and unknown not in tokenizer.encode(letter.lower())
    ]
    if lost:
        raise ValueError(
            f"The capital letters {''.join(lost)} are unknown, as are {_unknown_rate(tokenizer):.0%} of the tokens of "
            "a sample; load the tokenizer with do_lower_case=True, and set it in tokenizer_config.json."
        )
    return f"All are known; {_unknown_rate(tokenizer):.0%} of the tokens of a sample are unknown."


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
            f"{published.text!r} has the ids {found}, but {published.input_ids} were published; use the vocabulary "
            "published with the weights."
        )
    return f"{published.text!r} has its published ids."


def _check_published(path: pathlib.Path, checkpoint: checkpoints.Checkpoint, model: PublishedModel) -> Check | None:
    """None if the checkpoint is not this model."""
    named = _has_name(path, model) and checkpoint.parts <= {"encoder", "masked_lm", "sentence_order"}
    if not named and _differing(checkpoint.config, model.config):
        return None
    check = _attempt("published", lambda: _compare(checkpoint, model))
    return check if named or check.passed else None


def _has_name(path: pathlib.Path, model: PublishedModel) -> bool:
    """Whether the name of the folder or of a parent ends with the model's; download tools nest up to three folders."""
    folders = [re.sub(r"[^a-z0-9]+", "_", part.lower()) for part in path.resolve().parts[-4:]]
    return any(folder.endswith(name) for folder in folders for name in model.names)


def _differing(config: AlbertConfig, other: AlbertConfig) -> list[str]:
    """The fields in which the models of two configs differ in shape."""
    return [name for name in _SHAPE_FIELDS if getattr(config, name) != getattr(other, name)]


def _compare(checkpoint: checkpoints.Checkpoint, model: PublishedModel) -> str:
    name = model.names[0]
    if differing := _differing(checkpoint.config, model.config):
        shown = ", ".join(f"{field}={getattr(checkpoint.config, field)}" for field in differing)
        raise ValueError(f"The config differs from the published one of {name}: {shown}; download it again.")
    parts = checkpoint.parts | ({"pooler"} if "encoder/pooler/kernel" in checkpoint.arrays else set())
    slices = [item for item in model.slices if item.part in parts]
    differences = [_difference(checkpoint, item) for item in slices]
    for item, difference in zip(slices, differences, strict=True):
        if not difference <= item.tolerance:  # also false for NaN
            raise ValueError(
                f"{item.output} differs by {difference:.1e} from the published values of {name} (tolerance "
                f"{item.tolerance:.0e}); download the weights again."
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
    found = np.asarray(model(inputs)[item.output])[0][item.index]
    return float(np.max(np.abs(found - np.array(item.expected))))
