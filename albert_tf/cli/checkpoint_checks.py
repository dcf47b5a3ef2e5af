"""Checks of a downloaded checkpoint: files, shapes, values, vocabulary, and published outputs.

Letters: L sequence, D hidden, V vocabulary.
"""

import pathlib
import re
import string
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from albert_tf import checkpoints, models
from albert_tf.checkpoints.checkpoint import assign, check_size, reject_unknown
from albert_tf.checkpoints.names import joined
from albert_tf.cli.tables import Check
from albert_tf.config import AlbertConfig
from albert_tf.files.hub import model_folder
from albert_tf.layers.kernels import in_full_float32
from albert_tf.models import AlbertEncoder, AlbertForMaskedLM
from albert_tf.models.base import AlbertBase
from albert_tf.tasks.table import HEADS, smallest_task
from albert_tf.tokenization import AlbertTokenizer
from albert_tf.tokenization.files import vocabulary_of
from albert_tf.tokenization.sentencepiece.pieces import SPECIAL_PIECES
from albert_tf.tokenization.wordpiece.vocabulary import SPECIAL_PIECES as SPECIAL_WORD_PIECES


class PublishedOutput(NamedTuple):
    """A few published numbers of one output."""

    part: str  # of the checkpoint that computes it: encoder, pooler, masked_lm
    output: str  # `sequence_output` [L, D] and `pooled_output` [D] of the encoder, `logits` [L, V]
    input_ids: tuple[int, ...]  # of one row
    place: tuple[int | slice, ...]  # of the numbers in the output
    expected: Sequence
    tolerance: float  # largest absolute difference
    attention_mask: tuple[int, ...] = ()  # empty: all 1


class PublishedModel(NamedTuple):
    """A published model."""

    names: tuple[str, ...]  # endings of its folder's names, in lower case with `_` between words; the first is shown
    config: AlbertConfig
    outputs: tuple[PublishedOutput, ...]
    ids: Mapping[str, tuple[int, ...]] = {}  # of texts, with [CLS] and [SEP]


# Of the tests of transformers (`test_modeling_albert.py`, `test_modeling_tf_albert.py`) and of KerasHub
# (`albert_backbone_test.py`), with their tolerances.
PUBLISHED = (
    PublishedModel(
        ("albert_base_v2", "albert_base_en_uncased"),
        AlbertConfig.from_preset("base_v2"),
        (
            PublishedOutput(
                "encoder",
                "sequence_output",
                (0, 345, 232, 328, 740, 140, 1695, 69, 6078, 1588, 2),
                (slice(1, 4), slice(1, 4)),
                ((-0.6513, 1.5035, -0.2766), (-0.6515, 1.5046, -0.2780), (-0.6512, 1.5049, -0.2784)),
                1e-4,
                (0, *[1] * 10),
            ),
            PublishedOutput(
                *("masked_lm", "logits", (0, 1, 2, 3, 4, 5), (0, slice(3)), (4.595668, 0.74462754, -1.818147), 1e-4)
            ),
            PublishedOutput(
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


def check_checkpoint(path: str | pathlib.Path, published: Iterable[PublishedModel] = PUBLISHED) -> Iterator[Check]:
    """Checks a checkpoint of any format and its vocabulary; problems are reported, not raised.

    Args:
        path: as for `from_pretrained`.
        published: models with known outputs. A checkpoint with the shapes of one of them is compared with it. Different
            outputs are only a failure if the folder has the model's name and no task head; otherwise the weights may
            have been fine-tuned.
    """
    folder, checkpoint, tokenizer = pathlib.Path(path), None, None
    try:
        folder = model_folder(path)
        checkpoint = _read(folder)
    except (ValueError, OSError) as error:
        yield _failed("files", error)
    else:
        count = sum(array.size for array in checkpoint.arrays.values())
        yield Check("files", f"{len(checkpoint.arrays)} tensors with {count:,} values can be read.")
        yield _attempt("weights", check_weights, checkpoint)
        yield _attempt("values", _check_values, checkpoint)
    try:
        tokenizer = _read_vocabulary(folder)
        if checkpoint is not None:
            tokenizer.check_fits(checkpoint.config.vocab_size)
    except (ValueError, OSError) as error:
        yield _failed("vocabulary", error)
    else:
        same = "" if checkpoint is None else ", as in the config"
        yield Check("vocabulary", f"{tokenizer.vocab_size:,} pieces{same}.")
        yield _attempt("special pieces", _check_special_pieces, tokenizer)
        yield _attempt("capital letters", _check_capitals, tokenizer)
    if checkpoint is not None:
        for model in published:
            yield from _published_checks(folder, checkpoint, tokenizer, model)


def _published_checks(
    folder: pathlib.Path, checkpoint: checkpoints.Checkpoint, tokenizer: AlbertTokenizer | None, model: PublishedModel
) -> Iterator[Check]:
    is_named = _has_name(folder, model) and checkpoint.parts <= {"encoder", "masked_lm", "sentence_order"}
    if is_named or not _differing(checkpoint.config, model.config):
        check = _attempt("published", _compare, checkpoint, model)
        if is_named or check.passed:
            yield check
            for text in () if tokenizer is None else model.ids:
                yield _attempt("published text", _check_text, tokenizer, text, model.ids[text])


def _attempt(name: str, check: Callable[..., str], *arguments) -> Check:
    try:
        return Check(name, check(*arguments))
    except (ValueError, OSError) as error:
        return _failed(name, error)


def _failed(name: str, error: Exception) -> Check:
    return Check(name, " ".join(str(error).split()), passed=False)


def _read(folder: pathlib.Path) -> checkpoints.Checkpoint:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of values that are not finite, a check of its own
        return checkpoints.read(folder)


def _read_vocabulary(folder: pathlib.Path) -> AlbertTokenizer:
    file = vocabulary_of(folder)
    if file is None:
        raise ValueError(
            f"{folder} has no vocabulary; add the file that was published with the weights, such as spiece.model, "
            "30k-clean.model or vocab.txt."
        )
    return AlbertTokenizer.from_pretrained(file)


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


def _check_special_pieces(tokenizer: AlbertTokenizer) -> str:
    pieces = tokenizer.pieces
    if "<unk>" not in pieces:  # WordPiece: special tokens may have any id
        return ", ".join(f"{name} {pieces.index(name)}" for name in SPECIAL_WORD_PIECES if name in pieces) + "."
    wrong = [(piece, i) for i, piece in enumerate(SPECIAL_PIECES) if pieces[i : i + 1] != (piece,)]
    if wrong:
        raise ValueError(
            "ALBERT's special pieces have the ids 0 to 4, but this vocabulary has "
            f"{', '.join(f'{piece} at {pieces.index(piece)} for {i}' for piece, i in wrong)}; use the vocabulary that "
            "the weights were trained with."
        )
    return ", ".join(f"{piece} {i}" for i, piece in enumerate(SPECIAL_PIECES)) + "."


def _check_capitals(tokenizer: AlbertTokenizer) -> str:
    """If a lower-case letter is known but its capital is not, text should be lower-cased."""
    unknown = [letter for letter in string.ascii_letters if tokenizer.unk_token_id in tokenizer.encode(letter)]
    lost = "".join(letter for letter in unknown if letter.isupper() and letter.lower() not in unknown)
    if lost:
        raise ValueError(
            f"The capital letters {lost} are unknown; load the tokenizer with do_lower_case=True, and set it in "
            "tokenizer_config.json."
        )
    return "All are known."


def _check_text(tokenizer: AlbertTokenizer, text: str, ids: tuple[int, ...]) -> str:
    ours = tuple(tokenizer([text])["input_ids"][0].tolist())
    if ours != ids:
        raise ValueError(
            f"{text!r} has the ids {ours}, but {ids} were published; use the vocabulary published with the weights."
        )
    return f"{text!r} has its published ids."


def _has_name(path: pathlib.Path, model: PublishedModel) -> bool:
    """Whether the name of the folder or of a parent ends with the model's; download tools nest up to three folders."""
    folders = [re.sub(r"[^a-z0-9]+", "_", part.lower()) for part in path.resolve().parts[-4:]]
    return any(folder.endswith(model.names) for folder in folders)


def _differing(config: AlbertConfig, other: AlbertConfig) -> list[str]:
    """The sizes in which two configs differ."""
    ours, theirs = config.to_dict(), other.to_dict()
    return [f"{name}={ours[name]}" for name, size in theirs.items() if isinstance(size, int) and ours[name] != size]


def _compare(checkpoint: checkpoints.Checkpoint, model: PublishedModel) -> str:
    name = model.names[0]
    if differing := _differing(checkpoint.config, model.config):
        raise ValueError(f"The config differs from that of {name}: {', '.join(differing)}; download it again.")
    parts = checkpoint.parts | ({"pooler"} if "encoder/pooler/kernel" in checkpoint.arrays else set())
    outputs = [item for item in model.outputs if item.part in parts]
    differences = [_difference(checkpoint, item) for item in outputs]
    for item, difference in zip(outputs, differences, strict=True):
        if not difference <= item.tolerance:  # also false for NaN
            raise ValueError(
                f"{item.output} differs by {difference:.1e} from the published values of {name} (tolerance "
                f"{item.tolerance:.0e}); download the weights again."
            )
    return f"{len(outputs)} published outputs of {name} are reproduced, within {max(differences, default=0):.1e}."


@in_full_float32()
def _difference(checkpoint: checkpoints.Checkpoint, item: PublishedOutput) -> float:
    if item.part == "masked_lm":
        model = _filled(AlbertForMaskedLM, checkpoint)
    else:
        model = _filled(AlbertEncoder, checkpoint, add_pooling_layer=item.part == "pooler")
    mask = item.attention_mask or [1] * len(item.input_ids)
    inputs = {"input_ids": np.array([item.input_ids], np.int32), "attention_mask": np.array([mask], np.int32)}  # [1, L]
    return float(np.max(np.abs(np.asarray(model(inputs)[item.output])[0][item.place] - np.array(item.expected))))
