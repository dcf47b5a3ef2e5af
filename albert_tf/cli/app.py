"""The command line: one word for each thing to do, one file for each word.

A command's file imports what is slow to import inside its function, so that `--help` answers at once.
"""

import sys
from types import ModuleType
from typing import Annotated

import typer
import typer.core

from albert_tf.cli import (
    convert,
    evaluate,
    export,
    finetune,
    info,
    predict,
    prepare,
    pretrain,
    report,
    train_tokenizer,
    verify,
)
from albert_tf.cli.session import PROGRAM, user_errors

COMMANDS = (train_tokenizer, prepare, pretrain, report, finetune, evaluate, predict, convert, verify, export, info)
INTERRUPTED = 130  # 128 + SIGINT, as shells count


class Command(typer.core.TyperCommand):
    """A command whose options are listed in groups, and that says on Ctrl-C what is kept."""

    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print(f"{PROGRAM}: stopped; {_kept(self.name)}.", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None

    def format_options(self, ctx, formatter) -> None:
        groups = {}
        for param in self.get_params(ctx):
            title = "Arguments" if param.param_type_name == "argument" else "Options"
            record = param.get_help_record(ctx)
            if record is not None:
                groups.setdefault(getattr(param, "rich_help_panel", None) or title, []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _kept(name: str | None) -> str:
    """What remains of the work of an interrupted command."""
    return next((getattr(command, "KEPT", "nothing was written") for command in COMMANDS if name == command.NAME), "")


app = typer.Typer(
    name=PROGRAM,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: importing rich takes longer than everything else that help does
)


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"{PROGRAM} {version(PROGRAM)}")
        raise typer.Exit


@app.callback()
def _options_of_all(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """ALBERT from raw text to a served model."""


def _add(command: ModuleType) -> None:
    summary = (command.run.__doc__ or "").partition("\n")[0]
    app.command(command.NAME, cls=Command, short_help=summary)(command.run)


for _command in COMMANDS:
    _add(_command)


def main() -> None:
    """Runs a command."""
    with user_errors():
        app()
