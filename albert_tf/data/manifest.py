"""`manifest.json` of a folder made by `prepare`; it is written last, so a folder that has one is complete.

The folder is self-contained: `tokenizer/` holds the tokenizer's files, which a run copies into the folder of its model.
"""

from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from albert_tf.data.corpus import Vocabulary
from albert_tf.data.options import ExampleOptions, Format
from albert_tf.data.pretraining.examples import PretrainingExamples
from albert_tf.files.atomic import sha256, write_json
from albert_tf.files.json import read_json, verify_checksum, with_checksum
from albert_tf.files.urls import kind_of, location, without_secrets
from albert_tf.tokenization import AlbertTokenizer

MANIFEST_NAME = "manifest.json"
TOKENIZER_FOLDER = "tokenizer"
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
        changed = [key for key in mine if mine[key] != theirs[key]]
        named = {"vocab_hash": "another vocabulary, or other options of its tokenizer", "corpus": "other texts"}
        return [named.get(key, f"{key} is {theirs[key]!r}, was {mine[key]!r}") for key in changed if key != "examples"]


class ExampleStatistics(_Record):
    """Counts over examples.

    Args:
        examples: number of examples.
        tokens: their tokens, with special tokens, without padding.
        masked: tokens to predict, of which `masked_as_mask` are replaced by [MASK], `masked_as_random` by a random
            token, and `masked_as_kept` not at all.
        label_1: examples whose sentence_order_label is 1.
    """

    examples: int = 0
    tokens: int = 0
    masked: int = 0
    masked_as_mask: int = 0
    masked_as_kept: int = 0
    masked_as_random: int = 0
    label_1: int = 0

    @classmethod
    def of(cls, examples: PretrainingExamples, vocabulary: Vocabulary) -> "ExampleStatistics":
        """Counts a batch of examples."""
        lengths = examples.attention_mask.sum(axis=1)
        predicted = examples.masked_lm_weights > 0
        seen = np.take_along_axis(examples.input_ids, examples.masked_lm_positions, axis=1)[predicted]
        masked, as_mask = int(predicted.sum()), int((seen == vocabulary.mask_token_id).sum())
        as_kept = int((seen == examples.masked_lm_ids[predicted]).sum())
        return cls(
            examples=len(examples),
            tokens=int(lengths.sum()),
            masked=masked,
            masked_as_mask=as_mask,
            masked_as_kept=as_kept,
            masked_as_random=masked - as_mask - as_kept,
            label_1=int(examples.sentence_order_labels.sum()),
        )

    def __add__(self, other: "ExampleStatistics") -> "ExampleStatistics":
        return ExampleStatistics(
            **{name: getattr(self, name) + getattr(other, name) for name in type(self).model_fields}
        )

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


class Manifest(_Record):
    """Contents of a complete folder.

    Args:
        recipe: corpus and options.
        tokenizer: the tokenizer's files, in the folder `tokenizer`.
        documents: number of non-empty documents in the corpus, without those left out.
        repeated_documents: number of those whose text is that of an earlier one, whether they are left out or not.
        segments: number of their sentences; parts of very long sentences count singly.
        tokens: number of their tokens, before examples are made.
        unknown_tokens: number of these that are unknown to the vocabulary.
        statistics: sums over all shards; in a folder of documents only `examples` (per epoch) is counted.
        shards: the files.
    """

    recipe: PreparationSettings
    tokenizer: tuple[HashedFile, ...]
    documents: int
    repeated_documents: int = 0
    segments: int
    tokens: int
    unknown_tokens: int = 0
    statistics: ExampleStatistics
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
    """The attributes of a folder's tokenizer; raises ValueError if it is not the one that the folder was made with."""
    vocabulary = Vocabulary.of(AlbertTokenizer.from_pretrained(location(folder) / TOKENIZER_FOLDER))
    if vocabulary.vocab_hash != Manifest.load(folder).recipe.vocab_hash:
        raise ValueError(
            f"{location(folder) / TOKENIZER_FOLDER} was changed after the folder was prepared; restore its files, or "
            "prepare the folder again."
        )
    return vocabulary


def read_tokenizer_files(folder: str | Path) -> dict[str, bytes]:
    """Reads the tokenizer's files in a folder, content by name; raises ValueError if one is missing or was changed."""
    contents = {}
    for file in Manifest.load(folder).tokenizer:
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
