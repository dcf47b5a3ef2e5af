"""`manifest.json` of a folder made by `prepare`; it is written last, so a folder that has one is complete.

The folder is self-contained: the manifest describes the vocabulary, and `tokenizer/` holds the tokenizer's files, which
a run copies into the folder of its model.
"""

import base64
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from albert_tf.data.corpus import Vocabulary
from albert_tf.data.options import ExampleOptions, Format
from albert_tf.data.pretraining.examples import PretrainingExamples
from albert_tf.files.atomic import sha256, write_json
from albert_tf.files.json import read_json, verify_checksum, with_checksum
from albert_tf.files.urls import kind_of, location, without_secrets

MANIFEST_NAME = "manifest.json"
TOKENIZER_FOLDER = "tokenizer"
HISTOGRAM_STEP = 8
Record = TypeVar("Record", bound=BaseModel)


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class HashedFile(_Record):
    """A text file of the corpus or a file of the tokenizer: name without folder, size in bytes, SHA-256."""

    name: str
    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> "HashedFile":
        """Reads the file."""
        return cls(name=without_secrets(path.name), bytes=path.stat().st_size, sha256=sha256(path))


class PreparationSettings(_Record):
    """Everything that determines the bytes of the shards: equal recipes give equal shards."""

    examples: ExampleOptions
    format: Format = "examples"
    num_shards: int
    split_sentences: bool
    document_gap: int
    drop_repeated: bool = False
    vocab_size: int
    vocab_hash: str
    corpus: tuple[HashedFile, ...]

    def differences(self, other: "PreparationSettings") -> list[str]:
        """Describes how `other` differs, one phrase per difference."""
        mine, theirs = (
            {**recipe.model_dump(mode="json"), **recipe.examples.model_dump(mode="json")} for recipe in (self, other)
        )
        for values in (mine, theirs):
            del values["examples"]
            values["corpus"] = {file["sha256"]: file["name"] for file in values["corpus"]}
        phrases = [
            f"{key} is {theirs[key]!r}, was {mine[key]!r}"
            for key in mine
            if key not in ("corpus", "vocab_hash") and mine[key] != theirs[key]
        ]
        phrases += ["another vocabulary, or other options of its tokenizer"] * (self.vocab_hash != other.vocab_hash)
        added = [name for key, name in theirs["corpus"].items() if key not in mine["corpus"]]
        removed = [name for key, name in mine["corpus"].items() if key not in theirs["corpus"]]
        phrases += [f"texts added or changed: {', '.join(added)}"] * bool(added)
        phrases += [f"texts removed or changed: {', '.join(removed)}"] * bool(removed)
        if not phrases and self != other:
            phrases = ["the order or the names of the texts"]
        return phrases


class ExampleStatistics(_Record):
    """Counts over examples.

    Args:
        examples: number of examples.
        tokens: their tokens, with special tokens, without padding.
        masked: tokens to predict, of which `masked_as_mask` are replaced by [MASK], `masked_as_random` by a random
            token, and `masked_as_kept` not at all.
        label_1: examples whose sentence_order_label is 1.
        length_histogram: examples by length; entry i counts lengths 8 i to 8 i + 7.
    """

    examples: int = 0
    tokens: int = 0
    masked: int = 0
    masked_as_mask: int = 0
    masked_as_kept: int = 0
    masked_as_random: int = 0
    label_1: int = 0
    length_histogram: tuple[int, ...] = ()

    @classmethod
    def of(cls, examples: PretrainingExamples, vocabulary: Vocabulary) -> "ExampleStatistics":
        """Counts a batch of examples."""
        lengths = examples.attention_mask.sum(axis=1)
        predicted = examples.masked_lm_weights > 0
        seen = np.take_along_axis(examples.input_ids, examples.masked_lm_positions, axis=1)[predicted]
        masked, as_mask = int(predicted.sum()), int((seen == vocabulary.mask_token_id).sum())
        as_kept = int((seen == examples.masked_lm_ids[predicted]).sum())
        histogram = np.bincount(lengths // HISTOGRAM_STEP, minlength=examples.input_ids.shape[1] // HISTOGRAM_STEP + 1)
        return cls(
            examples=len(examples),
            tokens=int(lengths.sum()),
            masked=masked,
            masked_as_mask=as_mask,
            masked_as_kept=as_kept,
            masked_as_random=masked - as_mask - as_kept,
            label_1=int(examples.sentence_order_labels.sum()),
            length_histogram=tuple(histogram.tolist()),
        )

    def __add__(self, other: "ExampleStatistics") -> "ExampleStatistics":
        sums = {name: getattr(self, name) + getattr(other, name) for name in type(self).model_fields}
        longer, shorter = sorted((self.length_histogram, other.length_histogram), key=len, reverse=True)
        padded = shorter + (0,) * (len(longer) - len(shorter))
        sums["length_histogram"] = tuple(a + b for a, b in zip(longer, padded, strict=True))
        return ExampleStatistics(**sums)

    @property
    def mean_length(self) -> float:
        """Mean number of tokens in an example."""
        return self.tokens / self.examples if self.examples else 0.0

    @property
    def masked_share(self) -> float:
        """Fraction of tokens to predict."""
        return self.masked / self.tokens if self.tokens else 0.0

    @property
    def label_1_share(self) -> float:
        """Fraction of examples that are swapped or, for other objectives, paired with a random document."""
        return self.label_1 / self.examples if self.examples else 0.0


class Shard(_Record):
    """One TFRecord file of the folder."""

    name: Annotated[str, Field(pattern=r"^[^/\\]+$")]  # cannot point outside the folder
    bytes: int
    records: int
    statistics: ExampleStatistics


class VocabularyRecord(_Record):
    """What training needs of the vocabulary, except its size and hash, which are in the recipe.

    Args:
        pad_token_id, cls_token_id, sep_token_id, mask_token_id: special ids.
        start_of_word, end_of_word: one bit for each piece, in base64: whether it starts or ends a word.
        files: the tokenizer's files, in the folder `tokenizer`.
    """

    pad_token_id: int
    cls_token_id: int
    sep_token_id: int
    mask_token_id: int
    start_of_word: str
    end_of_word: str
    files: tuple[HashedFile, ...]

    @classmethod
    def of(cls, vocabulary: Vocabulary, folder: Path) -> "VocabularyRecord":
        """Describes a vocabulary whose files are in `folder`."""
        return cls(
            pad_token_id=vocabulary.pad_token_id,
            cls_token_id=vocabulary.cls_token_id,
            sep_token_id=vocabulary.sep_token_id,
            mask_token_id=vocabulary.mask_token_id,
            start_of_word=_pack(vocabulary.start_of_word),
            end_of_word=_pack(vocabulary.end_of_word),
            files=tuple(HashedFile.of(path) for path in sorted(folder.iterdir(), key=lambda path: path.name)),
        )


def _pack(bits: npt.NDArray[np.bool_]) -> str:
    return base64.b64encode(np.packbits(bits).tobytes()).decode()


class Manifest(_Record):
    """Contents of a complete folder.

    Args:
        recipe: corpus and options.
        vocabulary: the vocabulary and the tokenizer's files.
        documents: number of non-empty documents in the corpus, without those left out.
        repeated_documents: number of those whose text is that of an earlier one, whether they are left out or not.
        segments: number of their sentences; parts of very long sentences count singly.
        tokens: number of their tokens, before examples are made.
        unknown_tokens: number of these that are unknown to the vocabulary.
        statistics: sums over all shards; in a folder of documents only `examples` (per epoch) is counted.
        masked_share, label_1_share, mean_length: those of `statistics`, for people who read the file.
        shards: the files.
    """

    recipe: PreparationSettings
    vocabulary: VocabularyRecord
    documents: int
    repeated_documents: int = 0
    segments: int
    tokens: int
    unknown_tokens: int = 0
    statistics: ExampleStatistics
    masked_share: float
    label_1_share: float
    mean_length: float
    shards: tuple[Shard, ...]

    @classmethod
    def load(cls, folder: str | Path) -> "Manifest":
        """Reads the manifest of a folder; raises ValueError if it is missing or corrupt."""
        path = location(folder) / MANIFEST_NAME
        if kind_of(path) != "file":
            raise ValueError(
                f"{folder} is not a folder of prepared examples: it has no {MANIFEST_NAME}. Run `albert-tf prepare` "
                f"with this output folder until it finishes."
            )
        return load_record(path, cls, "prepare the folder again")


def load_vocabulary(folder: str | Path) -> Vocabulary:
    """Reads the vocabulary's attributes from a folder's manifest; raises ValueError if it is missing or corrupt."""
    manifest = Manifest.load(folder)
    size, values = manifest.recipe.vocab_size, manifest.vocabulary.model_dump(exclude={"files"})
    for name in ("start_of_word", "end_of_word"):
        packed = base64.b64decode(values[name])
        if len(packed) != -(-size // 8):
            raise ValueError(
                f"{location(folder) / MANIFEST_NAME}: `{name}` does not have {size:,} bits; prepare the folder again."
            )
        values[name] = np.unpackbits(np.frombuffer(packed, np.uint8), count=size).astype(bool)
    return Vocabulary(vocab_size=size, vocab_hash=manifest.recipe.vocab_hash, **values)


def read_tokenizer_files(folder: str | Path) -> dict[str, bytes]:
    """Reads the tokenizer's files in a folder, content by name; raises ValueError if one is missing or was changed."""
    contents = {}
    for file in Manifest.load(folder).vocabulary.files:
        path = location(folder) / TOKENIZER_FOLDER / Path(file.name).name  # cannot point outside the folder
        if kind_of(path) != "file":
            raise ValueError(f"{path} is missing; restore the file, or prepare the folder again.")
        if sha256(path) != file.sha256:
            raise ValueError(
                f"{path} was changed after the folder was prepared; restore the file, or prepare the folder again."
            )
        contents[path.name] = path.read_bytes()
    return contents


def load_record(path: Path, kind: type[Record], cure: str) -> Record:
    """Reads a file written by `save_record`.

    Raises:
        ValueError: the file is damaged, was edited, or holds another kind of record; the message ends with `cure`.
    """
    values = verify_checksum(read_json(path, cure=cure), path, cure)
    try:
        return kind.model_validate(values, strict=False)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}; {cure}.") from None


def save_record(path: Path, record: BaseModel) -> None:
    """Writes a record as indented JSON with a checksum."""
    write_json(path, with_checksum(record.model_dump(mode="json")), indent=1, ensure_ascii=False)
