"""Options of examples and of `prepare`."""

from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Format = Literal["examples", "documents"]


class Objective(StrEnum):
    """The sentence-pair objective.

    `SENTENCE_ORDER` (ALBERT): label 0 in order, 1 swapped. `NEXT_SENTENCE` (BERT): label 0 in order, 1 if the second
    segment comes from another document. `NONE`: one segment, label 0.
    """

    SENTENCE_ORDER = "sentence_order"
    NEXT_SENTENCE = "next_sentence"
    NONE = "none"


class ExampleOptions(BaseModel):
    """Options of the content of examples.

    Args:
        max_seq_length: tokens in an example, including special tokens and padding.
        max_predictions_per_seq: maximum number of masked tokens in an example, not counting permuted ones; None: no
            limit besides `masked_lm_prob`.
        masked_lm_prob: fraction of an example's tokens to mask.
        ngram: maximum number of words masked together; n words have probability proportional to 1 / n.
        favor_shorter_ngram: False reverses these probabilities.
        whole_word_masking: mask whole words; False: single tokens (the reference's `do_whole_word_mask`).
        permutation: also permute as many other tokens as are masked, and predict them (the reference's
            `do_permutation`); doubles the length of the masked_lm_* arrays.
        short_seq_prob: fraction of passes over a document with a shorter, random target length.
        dupe_factor: number of passes over the corpus, each with different pairs and masks; not used for documents.
        objective: see `Objective`. The reference's `random_next_sentence` is `"next_sentence"` with `reference_pairs`.
        reference_pairs: pair a chunk of a single segment with a random document and label it 1, as
            `create_pretraining_data.py` does.
        pack: pack several short examples into one row; attention stays within an example.
        seed: examples are a pure function of the seed and the documents.

    Example:

    >>> ExampleOptions(max_seq_length=512).predictions
    77

    References: ALBERT (arXiv 1909.11942) section 3.1 and 4.1.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_seq_length: int = Field(default=512, ge=8, le=2**16)
    max_predictions_per_seq: int | None = Field(default=None, ge=1)
    masked_lm_prob: float = Field(default=0.15, gt=0, le=1)
    ngram: int = Field(default=3, ge=1, le=16)
    favor_shorter_ngram: bool = True
    whole_word_masking: bool = True
    permutation: bool = False
    short_seq_prob: float = Field(default=0.1, ge=0, le=1)
    dupe_factor: int = Field(default=40, ge=1)
    objective: Objective = Objective.SENTENCE_ORDER
    reference_pairs: bool = False
    pack: bool = False
    seed: int = Field(default=12345, ge=0, lt=2**63)

    @model_validator(mode="after")
    def _check(self) -> "ExampleOptions":
        if self.reference_pairs and self.objective is Objective.NONE:
            raise ValueError(
                "`reference_pairs` must be False if examples have no pairs. Received: objective='none', "
                "reference_pairs=True. Choose one of the two."
            )
        return self

    @property
    def predictions(self) -> int:
        """P: length of the masked_lm_* arrays."""
        return self.max_masked * (2 if self.permutation else 1)

    @property
    def max_masked(self) -> int:
        """Maximum number of masked tokens in an example."""
        return self.max_predictions_per_seq or max(1, round(self.max_seq_length * self.masked_lm_prob))

    @property
    def max_tokens(self) -> int:
        """Maximum number of tokens in an example, without special tokens."""
        return self.max_seq_length - (2 if self.objective is Objective.NONE else 3)

    @property
    def examples_per_row(self) -> int:
        """S: maximum number of examples in a row."""
        return self.max_seq_length // 8 if self.pack else 1

    @property
    def sizes(self) -> dict[str, int]:
        """Lengths of the axes, as `Feature.row_shape` takes them: L, P and, with `pack`, S."""
        sizes = {"L": self.max_seq_length, "P": self.predictions}
        return {**sizes, "S": self.examples_per_row} if self.pack else sizes


class PrepareOptions(ExampleOptions):
    """Options of `prepare`, in addition to those of `ExampleOptions`.

    Args:
        inputs: text files, folders or patterns; by default one sentence per line and a blank line between documents.
        output_dir: folder for the shards and their manifest; created if it does not exist.
        format: `"examples"`, or `"documents"`: tokenized documents, from which training makes the same examples on
            the fly, for any number of passes.
        tokenizer: a SentencePiece file, a vocabulary file or a folder that holds one; None: the published English
            vocabulary.
        add_tokens: file of tokens to add to the vocabulary, one a line.
        do_lower_case: None: the setting in the tokenizer's folder, or True without one.
        split_sentences: lines are running text, wrapped or not, to be split into sentences.
        document_gap: number of consecutive blank lines that end a document; 0: only the end of a file does.
        drop_repeated: leave out documents whose text is that of an earlier one, to the letter.
        num_shards: number of files to write; the hash of a document's text selects its shard. 0: at least 8, with at
            most 256 MiB of text per shard, so that its tokens fit into a gigabyte of memory.
        num_processes: worker processes. With more than one, a script that calls `prepare` needs the usual
            `if __name__ == "__main__":`.
        runner: `"local"`, or `"beam"` for Apache Beam (install `albert-tf[beam]`). The result is the same.
        beam_options: options of Beam's pipeline, such as `"--runner=FlinkRunner"`; by default Beam runs in this
            process. All workers need access to the inputs, the tokenizer and `output_dir` under the same paths.

    Example:

    >>> PrepareOptions(inputs=["corpus/*.txt"], output_dir="examples", max_seq_length=128).predictions
    19
    """

    inputs: tuple[str | Path, ...] = Field(min_length=1)
    output_dir: Path
    format: Format = "examples"
    tokenizer: Path | None = None
    add_tokens: Path | None = None
    do_lower_case: bool | None = None
    split_sentences: bool = False
    document_gap: int = Field(default=1, ge=0)
    drop_repeated: bool = False
    num_shards: int = Field(default=0, ge=0, le=100_000)
    num_processes: int = Field(default=1, ge=1)
    runner: Literal["local", "beam"] = "local"
    beam_options: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_combinations(self) -> "PrepareOptions":
        if self.pack and self.format == "documents":
            raise ValueError(
                "`pack` must be False if examples are made on the fly. Received: pack=True, format='documents'. "
                "Choose one of the two."
            )
        if self.runner == "local" and self.beam_options:
            raise ValueError(
                f"`beam_options` must be empty with runner='local'. Received: beam_options={list(self.beam_options)}. "
                f"Set runner='beam' or omit them."
            )
        if self.runner == "beam" and self.num_processes > 1:
            raise ValueError(
                f"`num_processes` must be 1 with runner='beam'. Received: num_processes={self.num_processes}. Use "
                f"beam_options=['--direct_running_mode=multi_processing', '--direct_num_workers={self.num_processes}']."
            )
        return self
