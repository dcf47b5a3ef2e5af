"""`albert-tf train-tokenizer`: a vocabulary from text."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from albert_tf.tokenization import VocabularyReport

NAME = "train-tokenizer"


def run(
    inputs: Annotated[list[str], typer.Argument(help="Text files (.txt, .txt.gz), folders or patterns; UTF-8.")],
    output: Annotated[Path, typer.Option(help="Folder for the vocabulary.")],
    vocab_size: Annotated[int, typer.Option(help="Number of pieces.")] = 30000,
    model_type: Annotated[str, typer.Option(help="unigram, bpe or wordpiece.")] = "unigram",
    character_coverage: Annotated[float, typer.Option(help="Share of characters to cover.")] = 0.99995,
    do_lower_case: Annotated[bool, typer.Option(help="Whether capital letters are folded.")] = True,
    keep_accents: Annotated[
        bool | None, typer.Option(help="Whether accents are kept; without it they are not.", show_default=False)
    ] = None,
    user_defined_symbols: Annotated[
        str, typer.Option(help="Symbols that stay whole, with commas between them.", show_default=False)
    ] = "",
    byte_fallback: Annotated[bool, typer.Option(help="Whether what no piece covers is spelled in bytes.")] = False,
    input_sentence_size: Annotated[int, typer.Option(help="Most lines to learn from, drawn at random.")] = 10_000_000,
    heldout: Annotated[
        list[str] | None, typer.Option(help="Text to measure on; without it, a share of the lines.")
    ] = None,
    heldout_share: Annotated[float, typer.Option(help="That share; 10,000 lines at most.")] = 0.01,
    seed: Annotated[int, typer.Option(help="Of the draws of lines.")] = 12345,
    segmenter: Annotated[
        str | None, typer.Option(help="kiwi: pieces keep to Korean morphemes; needs albert_tf[korean].")
    ] = None,
) -> None:
    """Trains a vocabulary with ALBERT's special pieces and measures it on text that it has not seen.

    Example: albert-tf train-tokenizer corpus/*.txt --output vocabulary --vocab-size 8000
    """
    from albert_tf.text_files import find_files
    from albert_tf.tokenization import train_sentencepiece, train_wordpiece
    from albert_tf.tokenization.training import MODEL_TYPES

    if model_type not in (known := (*MODEL_TYPES, "wordpiece")):
        raise ValueError(f"`model_type` must be one of {', '.join(known)}. Received: model_type={model_type!r}.")
    options = {
        "vocab_size": vocab_size,
        "character_coverage": character_coverage,
        "do_lower_case": do_lower_case,
        "keep_accents": keep_accents,
        "user_defined_symbols": user_defined_symbols.split(",") if user_defined_symbols else (),
        "input_sentence_size": input_sentence_size,
        "heldout_files": find_files(heldout or ()),
        "heldout_share": heldout_share,
        "seed": seed,
    }
    if model_type == "wordpiece":
        _refuse_for_wordpiece(byte_fallback=byte_fallback, segmenter=segmenter)
        report = train_wordpiece(find_files(inputs), output, **options)
    else:
        more = {"model_type": model_type, "byte_fallback": byte_fallback, "segmenter": segmenter}
        report = train_sentencepiece(find_files(inputs), output, **options, **more)
    _print_report(report)


def _refuse_for_wordpiece(**options: bool | str | None) -> None:
    for name, value in options.items():
        if value:
            raise ValueError(
                f"`{name}` must go with model_type unigram or bpe. Received: {name}={value!r}, model_type='wordpiece'."
            )


def _print_report(report: "VocabularyReport") -> None:
    import rich

    from albert_tf.cli.tables import plain_table

    typer.echo(f"{report.vocab_size} pieces in {report.folder}")
    table = plain_table("vocabulary", "", "value")
    rows = {
        "lines read": f"{report.num_lines:,}",
        "passed over: too long, or NUL": f"{report.num_skipped_lines:,}",
        "learnt from": f"{report.num_training_lines:,}",
    }
    if (heldout := report.heldout) is not None:
        rows |= {
            "lines held out": f"{heldout.num_lines:,}",
            "tokens unknown there": f"{heldout.unknown_rate:.3%}",
            "characters lost there": f"{heldout.lost_rate:.3%}",
            "characters per token there": f"{heldout.characters_per_token:.3f}",
        }
    for label, value in rows.items():
        table.add_row(label, value)
    rich.print(table)
