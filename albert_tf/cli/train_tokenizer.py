"""`albert-tf train-tokenizer`: a vocabulary from text."""

from pathlib import Path
from typing import Annotated

import typer

NAME = "train-tokenizer"


def run(
    inputs: Annotated[list[str], typer.Argument(help="Text files (.txt, .txt.gz), folders or patterns; UTF-8.")],
    output: Annotated[Path, typer.Option(help="Folder for the vocabulary.")],
    vocab_size: Annotated[int, typer.Option(help="Number of pieces.")] = 30000,
    model_type: Annotated[str, typer.Option(help="unigram or bpe.")] = "unigram",
    character_coverage: Annotated[float, typer.Option(help="Share of characters to cover.")] = 0.99995,
    do_lower_case: Annotated[bool, typer.Option(help="Whether capital letters are folded.")] = True,
    keep_accents: Annotated[bool, typer.Option(help="Whether accents are kept.")] = False,
    segmenter: Annotated[
        str | None, typer.Option(help="kiwi: pieces keep to Korean morphemes; needs albert_tf[korean].")
    ] = None,
) -> None:
    """Trains a SentencePiece vocabulary with ALBERT's special pieces.

    Example: albert-tf train-tokenizer corpus/*.txt --output vocabulary --vocab-size 8000
    """
    from albert_tf.tokenization import train_sentencepiece
    from albert_tf.tokenization.text_files import find_files

    tokenizer = train_sentencepiece(
        find_files(inputs),
        output,
        vocab_size=vocab_size,
        model_type=model_type,
        character_coverage=character_coverage,
        do_lower_case=do_lower_case,
        keep_accents=keep_accents,
        segmenter=segmenter,
    )
    typer.echo(f"{tokenizer.vocab_size} pieces in {output}")
