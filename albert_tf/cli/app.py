"""The command line, one file per command.

Commands import slow modules inside their functions, so that `--help` is fast.
"""

import atexit
import gc
import os
from typing import Annotated

import typer
import typer.core

from albert_tf.cli import (
    convert,
    doctor,
    evaluate,
    export,
    finetune,
    info,
    predict,
    prepare,
    pretrain,
    report,
    serve,
    train_tokenizer,
)
from albert_tf.cli.session import PROGRAM, print_sentence, user_errors

COMMANDS = (
    train_tokenizer,
    prepare,
    pretrain,
    report,
    finetune,
    evaluate,
    predict,
    convert,
    export,
    serve,
    info,
    doctor,
)
INTERRUPTED = 130  # 128 + SIGINT, as in shells


class Command(typer.core.TyperCommand):
    """Names `--set` for options that it lacks, and a backend that it cannot use; says on Ctrl-C what was kept."""

    def parse_args(self, ctx, args):
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if hasattr(error, "possibilities") and any("--set" in param.opts for param in self.params):
                name = vars(error)["option_name"].removeprefix("--").removeprefix("no-").replace("-", "_")
                vars(error)["message"] += f"; settings that have no option are set by --set {name}=VALUE."
            raise

    def invoke(self, ctx):
        backend, is_onnx = os.environ.get("KERAS_BACKEND") or "tensorflow", ctx.params.get("form") == "onnx"
        if backend != "tensorflow" and self.name in ("pretrain", "finetune", "export") and not is_onnx:
            raise ValueError(f"`{PROGRAM} {self.name}` needs KERAS_BACKEND=tensorflow. Received: {backend}; unset it.")
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            command = next(command for command in COMMANDS if self.name == command.NAME)
            print_sentence(f"interrupted; {getattr(command, 'REMAINS', 'nothing was written')}.")
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    name=PROGRAM,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help, because importing rich is slow
)


def _show_version(requested: bool) -> None:
    if requested:
        from albert_tf.files.installation import version

        typer.echo(f"{PROGRAM} {version()}")
        raise typer.Exit


@app.callback()
def _common_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """ALBERT from raw text to a served model; the commands are in this order."""


for _command in COMMANDS:
    _summary = (_command.run.__doc__ or "").partition("\n")[0]
    app.command(_command.NAME, cls=Command, short_help=_summary)(_command.run)


def main() -> None:
    """Runs a command."""
    atexit.register(gc.freeze)  # nothing is collected at the end, which takes a second after an import of TensorFlow
    with user_errors():
        app(prog_name=PROGRAM)
