"""`albert-tf train-tokenizer`: trains a vocabulary."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from albert_tf.cli.paths import check_new_folder, new_folder
from albert_tf.cli.tables import print_table
from albert_tf.files.urls import location
from albert_tf.inference.progress import progress_line

if TYPE_CHECKING:
    from albert_tf.tokenization import VocabularyReport

NAME = "train-tokenizer"


def run(
    inputs: Annotated[list[str], typer.Argument(help="Text files (.txt, .txt.gz), folders or patterns; UTF-8.")],
    output: Annotated[Path, typer.Option(help="New folder for the vocabulary.")],
    vocab_size: Annotated[int, typer.Option(help="Number of pieces.")] = 30000,
    model_type: Annotated[Literal["unigram", "bpe"], typer.Option(help="Kind of pieces.")] = "unigram",
    seed: Annotated[int, typer.Option(help="Seed for choosing lines.")] = 12345,
    do_lower_case: Annotated[bool, typer.Option(help="Lower-case the text.")] = True,
    keep_accents: Annotated[bool | None, typer.Option(help="Keep accents; by default they are dropped.")] = None,
    character_coverage: Annotated[float, typer.Option(help="Fraction of characters to cover.")] = 0.99995,
    user_defined_symbols: Annotated[
        str, typer.Option(help="Symbols that are never split, comma-separated.", show_default=False)
    ] = "",
    byte_fallback: Annotated[bool, typer.Option(help="Encode unknown characters as bytes.")] = False,
    segmenter: Annotated[str | None, typer.Option(help="kiwi: split at Korean morphemes (albert-tf[korean]).")] = None,
    input_sentence_size: Annotated[int, typer.Option(help="Maximum number of lines, chosen at random.")] = 10_000_000,
    heldout: Annotated[list[str] | None, typer.Option(help="Held-out text; default: a fraction of the lines.")] = None,
    heldout_share: Annotated[float, typer.Option(help="Fraction of lines to hold out, at most 10,000.")] = 0.01,
) -> None:
    """Trains a vocabulary with ALBERT's special pieces and evaluates it on held-out text.

    Example: albert-tf train-tokenizer corpus/*.txt --output vocabulary
    """
    from albert_tf.files.text import find_files
    from albert_tf.tokenization import train_sentencepiece

    check_new_folder(output)
    files, heldout_files = find_files(inputs), find_files(heldout or ())
    for file in files:
        file.open("rb").close()  # raises before anything is made
    with progress_line("train"), new_folder(output) as written:
        report = train_sentencepiece(
            files,
            written,
            vocab_size,
            do_lower_case=do_lower_case,
            keep_accents=keep_accents,
            model_type=model_type,
            character_coverage=character_coverage,
            user_defined_symbols=user_defined_symbols.split(",") if user_defined_symbols else (),
            byte_fallback=byte_fallback,
            input_sentence_size=input_sentence_size,
            heldout_files=heldout_files,
            heldout_share=heldout_share,
            seed=seed,
            segmenter=segmenter,
        )
    typer.echo(f"{report.vocab_size:,} pieces in {location(output)}")
    _print_report(report)


def _print_report(report: "VocabularyReport") -> None:
    rows = {
        "lines read": f"{report.num_lines:,}",
        "lines skipped (too long, or NUL)": f"{report.num_skipped_lines:,}",
        "lines trained on": f"{report.num_training_lines:,}",
        "held-out lines": f"{report.num_heldout_lines:,}",
    }
    if report.unknown_rate is not None:
        rows |= {
            "held-out unknown tokens": f"{report.unknown_rate:.3%}",
            "held-out characters per token": f"{report.characters_per_token:.3f}",
        }
    print_table("vocabulary", ("", "value"), rows.items())
