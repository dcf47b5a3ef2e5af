"""The command line: one word for each thing to do, one file for each word.

A command's file imports what is heavy inside its function, so that `--help` answers at once.
"""

import os
import sys
import warnings

import typer

from albert_tf.cli import (
    ablations,
    convert,
    evaluate,
    export,
    finetune,
    info,
    nsmc,
    predict,
    prepare,
    pretrain,
    quickstart,
    report,
    train_tokenizer,
    verify,
)

app = typer.Typer(
    name="albert-tf",
    help="ALBERT from raw text to a served model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: building tables and Markdown takes longer than all else that help does
)
for command in (
    *(quickstart, train_tokenizer, prepare, pretrain, report, finetune, evaluate, predict),
    *(convert, verify, export, info, nsmc, ablations),
):
    app.command(command.NAME)(command.run)


def main() -> None:
    """Runs a command; a user's mistake is one sentence on stderr and exit code 2, a warning one sentence alone."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read where TensorFlow is first imported
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: print(f"albert-tf: {message}", file=sys.stderr)
        try:
            app()
        except (ValueError, OSError, RuntimeError) as error:
            print(f"albert-tf: {error}", file=sys.stderr)
            sys.exit(2)
