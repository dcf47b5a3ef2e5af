"""Checks of a downloaded checkpoint: files, shapes, values, vocabulary, and published outputs.

Letters: L sequence, D hidden, V vocabulary.
"""

import dataclasses
import pathlib
import re
import string
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from albert_tf import checkpoints, models
from albert_tf.checkpoints.checkpoint import assign, check_size, reject_unknown
from albert_tf.checkpoints.names import joined
from albert_tf.config import AlbertConfig
from albert_tf.files.hub import model_folder
from albert_tf.models import AlbertEncoder, AlbertForMaskedLM
from albert_tf.models.base import AlbertBase
from albert_tf.tasks.table import HEADS, smallest_task
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.files import vocabulary_places

__all__ = ["Check", "check_weights", "verify"]

SPECIAL_IDS = {"<pad>": 0, "<unk>": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}


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


@dataclasses.dataclass(frozen=True)
class PublishedSlice:
    """A few published numbers of one output.

    Attributes:
        part: part of the checkpoint that computes the output.
        output: its name: `sequence_output` [L, D] and `pooled_output` [D] of the encoder, `logits` [L, V].
        input_ids: L ids of one row.
        index: index of the values in the output.
        expected: the values.
        tolerance: largest absolute difference.
        attention_mask: L values; empty means all 1.
    """

    part: Literal["encoder", "pooler", "masked_lm"]
    output: str
    input_ids: tuple[int, ...]
    index: tuple[int | slice, ...]
    expected: Sequence
    tolerance: float
    attention_mask: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class PublishedModel:
    """A published model.

    Attributes:
        names: endings of its folder names, in lower case with `_` between words; the first one is displayed.
        config: AlbertConfig.
        slices: known outputs.
        ids: those of texts, with [CLS] and [SEP].
    """

    names: tuple[str, ...]
    config: AlbertConfig
    slices: tuple[PublishedSlice, ...]
    ids: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)


# Of the tests of transformers (`test_modeling_albert.py`, `test_modeling_tf_albert.py`) and of KerasHub
# (`albert_backbone_test.py`), with their tolerances.
PUBLISHED = (
    PublishedModel(
        ("albert_base_v2", "albert_base_en_uncased"),
        AlbertConfig.from_preset("base_v2"),
        (
            PublishedSlice(
                "encoder",
                "sequence_output",
                (0, 345, 232, 328, 740, 140, 1695, 69, 6078, 1588, 2),
                (slice(1, 4), slice(1, 4)),
                ((-0.6513, 1.5035, -0.2766), (-0.6515, 1.5046, -0.2780), (-0.6512, 1.5049, -0.2784)),
                1e-4,
                (0, *[1] * 10),
            ),
            PublishedSlice(
                "masked_lm",
                "logits",
                (0, 1, 2, 3, 4, 5),
                (0, slice(3)),
                (4.595668, 0.74462754, -1.818147),
                1e-4,
            ),
            PublishedSlice(
                "pooler",
                "pooled_output",
                (2, 13, 1, 3),
                (slice(5),),
                (0.328261, -0.415397, -0.388745, 0.156846, 0.657874),
                1e-2,
            ),
        ),
        {"The quick brown fox jumps over the lazy dog.": (2, 14, 2231, 886, 2385, 17659, 84, 14, 16792, 1952, 9, 3)},
    ),
)


def verify(path: str | pathlib.Path, published: Sequence[PublishedModel] = PUBLISHED) -> list[Check]:
    """Checks a checkpoint of any format and its vocabulary. Problems are findings, not exceptions.

    Args:
        path: as for `from_pretrained`.
        published: models with known outputs. A checkpoint with the shapes of one of them is compared with it. Different
            outputs are only a failure if the folder has the model's name and no task head; otherwise the weights may
            have been fine-tuned.

    Returns:
        list of Check: `files`; `weights` and `values` if the files can be read; `vocabulary`, and
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
    check_size(checkpoint)
    heads = sorted(checkpoint.parts - {"encoder"})
    reject_unknown(checkpoint.source, set(heads) - HEADS)
    _filled(AlbertEncoder, checkpoint, add_pooling_layer="encoder/pooler/kernel" in checkpoint.arrays)
    for head in heads:
        _filled(getattr(models, smallest_task(head).model), checkpoint)
    return f"Every tensor is used: {', '.join(['encoder', *heads])}."


def _filled(kind: type[AlbertBase], checkpoint: checkpoints.Checkpoint, **arguments) -> AlbertBase:
    model = kind(checkpoint.config, **{**kind.settings_from_file(dict(checkpoint.settings)), **arguments})
    assign(checkpoint, model.variables_by_path())
    return model


def _check_values(checkpoint: checkpoints.Checkpoint) -> str:
    wrong = sorted(variable for variable, array in checkpoint.arrays.items() if not np.isfinite(array).all())
    if wrong:
        raise ValueError(f"NaN or infinity in {joined(wrong)}; download the checkpoint again or use an earlier one.")
    return "All values are finite."


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
        shown = ", ".join(f"{piece} at {tokenizer.pieces.index(piece)} for {i}" for piece, i in wrong.items())
        raise ValueError(
            f"ALBERT's special pieces have the ids 0 to 4, but this vocabulary has {shown}; use the vocabulary that "
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
            f"The capital letters {''.join(lost)} are unknown; load the tokenizer with do_lower_case=True, and set it "
            "in tokenizer_config.json."
        )
    return "All are known."


# === Published outputs ===


def _published_checks(
    path: pathlib.Path, checkpoint: checkpoints.Checkpoint, published: Sequence[PublishedModel]
) -> list[Check]:
    """Those of the models that the checkpoint may be, by its name, or by its shapes and outputs."""
    checks = []
    for model in published:
        is_named = _has_name(path, model) and checkpoint.parts <= {"encoder", "masked_lm", "sentence_order"}
        if is_named or not _differing(checkpoint.config, model.config):
            check = _attempt("published", lambda model=model: _compare(checkpoint, model))
            if is_named or check.passed:
                checks += [
                    check,
                    *(
                        _attempt("published text", lambda text=text: _check_text(path, *text))
                        for text in model.ids.items()
                    ),
                ]
    return checks


def _check_text(path: pathlib.Path, text: str, ids: tuple[int, ...]) -> str:
    ours = tuple(_find_tokenizer(path)([text])["input_ids"][0].tolist())
    if ours != ids:
        raise ValueError(
            f"{text!r} has the ids {ours}, but {ids} were published; use the vocabulary published with the weights."
        )
    return f"{text!r} has its published ids."


def _has_name(path: pathlib.Path, model: PublishedModel) -> bool:
    """Whether the name of the folder or of a parent ends with the model's; download tools nest up to three folders."""
    folders = [re.sub(r"[^a-z0-9]+", "_", part.lower()) for part in path.resolve().parts[-4:]]
    return any(folder.endswith(name) for folder in folders for name in model.names)


def _differing(config: AlbertConfig, other: AlbertConfig) -> list[str]:
    """The sizes in which two configs differ."""
    names = [field.name for field in dataclasses.fields(config)]
    sizes = [name for name in names if isinstance(getattr(other, name), int)]
    return [f"{name}={getattr(config, name)}" for name in sizes if getattr(config, name) != getattr(other, name)]


def _compare(checkpoint: checkpoints.Checkpoint, model: PublishedModel) -> str:
    name = model.names[0]
    if differing := _differing(checkpoint.config, model.config):
        raise ValueError(f"The config differs from that of {name}: {', '.join(differing)}; download it again.")
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
    output = np.asarray(model(inputs)[item.output])[0][item.index]
    return float(np.max(np.abs(output - np.array(item.expected))))
