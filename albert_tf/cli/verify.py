"""`albert-tf verify`: checks a downloaded checkpoint."""

from pathlib import Path
from typing import Annotated

import typer

from albert_tf.cli.paths import checkpoint_folder
from albert_tf.cli.tables import AsJson, print_json, print_table
from albert_tf.progress import progress_line

NAME = "verify"


def run(
    folder: Annotated[
        Path, typer.Argument(help="Folder, file or prefix of a checkpoint of any format, or a model's name.")
    ],
    as_json: AsJson = False,
) -> None:
    """Checks files, weights, vocabulary and published outputs; exits with 0 if all pass, else with 2.

    Example: albert-tf verify albert_base_v2
    """
    if not as_json:  # in JSON, a missing checkpoint is a finding like others
        folder = checkpoint_folder(folder)
    with progress_line("verify"):
        from albert_tf.verify import verify  # imports TensorFlow, so only after the path was checked

        checks = verify(folder)
    if as_json:
        print_json(checks)
    else:
        rows = ((check.name, "pass" if check.passed else "fail", check.finding) for check in checks)
        print_table("", ("check", "result", "finding"), rows, num_text_columns=3)
    if not all(check.passed for check in checks):
        raise typer.Exit(2)
