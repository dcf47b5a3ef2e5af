"""The options of examples and of preparing them, checked once."""

from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Format = Literal["examples", "documents"]


class Objective(StrEnum):
    """What the second loss learns from the order of the two segments of an example.

    `SENTENCE_ORDER` (ALBERT): label 0 in order, 1 swapped. `NEXT_SENTENCE` (BERT): label 0 in order, 1 when the second
    segment comes from another document. `NONE`: one segment, label 0 always.
    """

    SENTENCE_ORDER = "sentence_order"
    NEXT_SENTENCE = "next_sentence"
    NONE = "none"


class ExampleOptions(BaseModel):
    """Options that decide the content of examples.

    Args:
        max_seq_length: tokens in an example, special tokens and padding included.
        max_predictions_per_seq: most masked tokens in an example (tokens that change places not counted); None: as
            many as `masked_lm_prob` asks for.
        masked_lm_prob: share of an example's tokens that is masked.
        ngram: longest run of words masked together; a run of n words has probability proportional to 1 / n.
        favor_shorter_ngram: False reverses those probabilities.
        whole_word_masking: mask words as wholes; False: each token by itself (the reference's `do_whole_word_mask`).
        permutation: beside the masked tokens, as many others change places and are to be told too (the reference's
            `do_permutation`); the masked_lm_* arrays are then twice as long.
        short_seq_prob: share of passes over a document that aim at a shorter, random length.
        dupe_factor: passes over the corpus, each with other pairs and other masks.
        objective: see `Objective`. The reference's `random_next_sentence` is `"next_sentence"` with `reference_pairs`.
        reference_pairs: pair a chunk of a single segment with a random document and label it 1, as
            `create_pretraining_data.py` does.
        pack: put several short examples into one row; the model lets each attend to itself alone.
        seed: examples are a pure function of it and of the documents.

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
                "`reference_pairs` must be False where examples have no pairs. Received: objective='none', "
                "reference_pairs=True. Choose one of the two."
            )
        return self

    @property
    def predictions(self) -> int:
        """P: length of the masked_lm_* arrays."""
        return self.largest_budget * (2 if self.permutation else 1)

    @property
    def largest_budget(self) -> int:
        """Most tokens that are masked in an example."""
        return self.max_predictions_per_seq or max(1, round(self.max_seq_length * self.masked_lm_prob))

    @property
    def room(self) -> int:
        """Tokens that fit beside the special tokens."""
        return self.max_seq_length - (2 if self.objective is Objective.NONE else 3)

    @property
    def examples_per_row(self) -> int:
        """S: how many examples go into a row at most."""
        return self.max_seq_length // 8 if self.pack else 1

    @property
    def sizes(self) -> dict[str, int]:
        """Lengths of the axes L and P, and S where rows are packed, as `Feature.row_shape` takes them."""
        sizes = {"L": self.max_seq_length, "P": self.predictions}
        return {**sizes, "S": self.examples_per_row} if self.pack else sizes


class PrepareOptions(ExampleOptions):
    """Options of `prepare`: those of `ExampleOptions`, and where from and where to.

    Args:
        inputs: text files, folders or patterns; one sentence a line, an empty line between documents, unless the
            options below say otherwise.
        output_dir: folder for the shards and their manifest; made if it is not there.
        format: `"examples"`, or `"documents"`: tokenised documents, of which training makes the same examples on the
            fly, pass after pass without end.
        tokenizer: a SentencePiece file, a vocabulary file or a folder that holds one; None: the published English
            vocabulary.
        do_lower_case: None: as the tokenizer's folder says, else True.
        split_sentences: lines are running text, wrapped or not, to be split into sentences.
        document_gap: how many empty lines in a row end a document; 0: only the end of a file does.
        num_shards: files to write; a document goes to the one that the hash of its text chooses. 0: 8, or more, so
            that none is made of more than 256 MiB of text, and its tokens fit into a gigabyte of memory.
        num_processes: worker processes. With more than one, a script that calls `prepare` needs the usual
            `if __name__ == "__main__":`.
        runner: `"local"`, or `"beam"`: Apache Beam, which `albert_tf[beam]` brings. The result is the same.
        beam_options: of Beam's pipeline, such as `"--runner=FlinkRunner"`; without any, Beam runs in this process.
            Every worker must see the inputs, the tokenizer and `output_dir` under the same paths.

    Example:

    >>> PrepareOptions(inputs=["corpus/*.txt"], output_dir="examples", max_seq_length=128).predictions
    19
    """

    inputs: tuple[str | Path, ...] = Field(min_length=1)
    output_dir: Path
    format: Format = "examples"
    tokenizer: Path | None = None
    do_lower_case: bool | None = None
    split_sentences: bool = False
    document_gap: int = Field(default=1, ge=0)
    num_shards: int = Field(default=0, ge=0, le=10_000)
    num_processes: int = Field(default=1, ge=1)
    runner: Literal["local", "beam"] = "local"
    beam_options: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_format(self) -> "PrepareOptions":
        if self.pack and self.format == "documents":
            raise ValueError(
                "`pack` must be False where examples are made on the fly. Received: pack=True, format='documents'. "
                "Choose one of the two."
            )
        return self

    @model_validator(mode="after")
    def _check_runner(self) -> "PrepareOptions":
        if self.runner == "local" and self.beam_options:
            raise ValueError(
                f"`beam_options` must be empty unless Beam runs. Received: runner='local', "
                f"beam_options={list(self.beam_options)}. Set runner='beam' or leave them out."
            )
        if self.runner == "beam" and self.num_processes > 1:
            raise ValueError(
                f"`num_processes` must be 1 where Beam runs. Received: runner='beam', num_processes="
                f"{self.num_processes}. Ask Beam: beam_options=['--direct_running_mode=multi_processing', "
                f"'--direct_num_workers={self.num_processes}']."
            )
        return self
