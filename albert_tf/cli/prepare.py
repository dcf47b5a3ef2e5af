"""`albert-tf prepare`: makes pretraining examples from text files."""

from pathlib import Path
from typing import Annotated

import typer

from albert_tf.cli.tables import Quiet, print_table
from albert_tf.inference.progress import progress_line

NAME = "prepare"
REMAINS = "finished shards are kept, and the same command resumes"
_UNITS = {"tokenize": "bytes"}


def run(
    inputs: Annotated[list[str], typer.Argument(help="Text files (.txt, .txt.gz), folders or patterns; UTF-8.")],
    output: Annotated[Path, typer.Option(help="Folder to write.")],
    format: Annotated[
        str, typer.Option(help="examples, or documents (tokenized text for examples made on the fly).")
    ] = "examples",
    tokenizer: Annotated[
        Path | None,
        typer.Option(help="Vocabulary: a folder, a .model or a vocab.txt file; default: the published English one."),
    ] = None,
    add_tokens: Annotated[
        Path | None, typer.Option(help="File of tokens to add to the vocabulary, one a line.")
    ] = None,
    max_seq_length: Annotated[int, typer.Option(help="Tokens per example.")] = 512,
    dupe_factor: Annotated[
        int, typer.Option(help="Passes over the corpus, each with different masks; only examples.")
    ] = 40,
    objective: Annotated[str, typer.Option(help="sentence_order, next_sentence or none.")] = "sentence_order",
    seed: Annotated[int, typer.Option(help="Seed; the same text, options and seed give the same examples.")] = 12345,
    max_predictions_per_seq: Annotated[int | None, typer.Option(help="Maximum masked tokens per example.")] = None,
    masked_lm_prob: Annotated[float, typer.Option(help="Fraction of tokens to mask.")] = 0.15,
    ngram: Annotated[int, typer.Option(help="Maximum consecutive words to mask.")] = 3,
    favor_shorter_ngram: Annotated[bool, typer.Option(help="Prefer shorter n-grams.")] = True,
    whole_word_masking: Annotated[bool, typer.Option(help="Mask all pieces of a word together.")] = True,
    permutation: Annotated[bool, typer.Option(help="Also permute as many tokens, and predict them.")] = False,
    split_sentences: Annotated[bool, typer.Option(help="Split running text into sentences.")] = False,
    document_gap: Annotated[int, typer.Option(help="Empty lines between documents; 0: one document per file.")] = 1,
    drop_repeated: Annotated[
        bool, typer.Option("--drop-repeated", help="Leave out documents that repeat others.")
    ] = False,
    short_seq_prob: Annotated[float, typer.Option(help="Fraction of passes with shorter examples.")] = 0.1,
    reference_pairs: Annotated[
        bool, typer.Option(help="Pair a lone sentence with a random document, as in Google's code.")
    ] = False,
    pack: Annotated[bool, typer.Option("--pack", help="Pack several short examples into one row.")] = False,
    num_shards: Annotated[int, typer.Option(help="Files to write; 0: at least 8, depending on the text.")] = 0,
    num_processes: Annotated[int, typer.Option(help="Worker processes.")] = 1,
    runner: Annotated[str, typer.Option(help="local, or beam for Apache Beam (albert-tf[beam]).")] = "local",
    beam_options: Annotated[str, typer.Option(help="Beam's options, such as '--runner=FlinkRunner ...'.")] = "",
    quiet: Quiet = False,
) -> None:
    """Writes TFRecord shards of masked sentence pairs, or of tokenized documents, with a manifest.

    Input: one sentence per line with empty lines between documents, or running text with --split-sentences.

    Example: albert-tf prepare corpus/*.txt --output examples --dupe-factor 10
    """
    import shlex

    from albert_tf.data import PrepareOptions, prepare
    from albert_tf.files.validation import checked

    values = {name: value for name, value in locals().items() if name in PrepareOptions.model_fields}
    values |= {"inputs": tuple(inputs), "output_dir": output, "beam_options": tuple(shlex.split(beam_options))}
    options = checked(PrepareOptions, values)
    with progress_line(NAME, shown=not quiet) as show:
        report = prepare(options, lambda now: show(now.done, now.total, _UNITS.get(now.stage, "tokens"), now.stage))
    _print_report(report)


def _print_report(report) -> None:
    manifest, statistics = report.manifest, report.manifest.statistics
    repeated = "repeated, left out" if manifest.recipe.drop_repeated else "of these repeated"
    rows = {
        "documents": f"{manifest.documents:,}",
        repeated: f"{manifest.repeated_documents:,}",
        "tokens in the corpus": f"{manifest.tokens:,}",
        "unknown tokens": f"{manifest.unknown_tokens / manifest.tokens:.3%}",
    }
    of_examples = {
        "examples": f"{statistics.examples:,}",
        "mean tokens per example": f"{statistics.mean_length:.1f}",
        "fraction of tokens masked": f"{statistics.masked_share:.3f}",
        "rows written": f"{sum(shard.records for shard in manifest.shards):,}",
    }
    pairs = {"sentence_order": "fraction of pairs swapped", "next_sentence": "fraction of random pairs"}
    if manifest.recipe.examples.objective in pairs:
        of_examples[pairs[manifest.recipe.examples.objective]] = f"{statistics.label_1_share:.3f}"
    rows |= of_examples if manifest.recipe.format == "examples" else {}
    title = f"{manifest.recipe.format} in {report.folder}{', existing files' * report.reused}"
    print_table(title, ("", "value"), rows.items())
