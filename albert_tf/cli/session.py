"""Hides TensorFlow's start-up messages, and reports errors as one sentence on stderr."""

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator

from albert_tf.cli.tables import printable
from albert_tf.files.urls import of_a_library, with_urls
from albert_tf.lazy import FirstImport

PROGRAM = "albert-tf"
_LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_VERBOSE_LEVELS = ("0", "1")
_CURES = {
    PermissionError: "check its permissions",
    IsADirectoryError: "pass a file",
    NotADirectoryError: "pass a folder",
    FileNotFoundError: "check the path",
}


@contextlib.contextmanager
def user_errors() -> Iterator[None]:
    """Turns errors into one sentence on stderr and an exit status, and warnings into one sentence each.

    The status is 2, or that of the signal if training was interrupted: 130 after Ctrl-C, 143 after SIGTERM.
    """
    quiet = FirstImport("tensorflow", _import_quietly)
    if sys.stderr is None or not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    if os.environ.setdefault(_LOG_LEVEL, "3") not in _VERBOSE_LEVELS and "tensorflow" not in sys.modules:
        sys.meta_path.insert(0, quiet)
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: print_sentence(str(message))
        try:
            yield
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] == __name__.partition(".")[0]:
                raise
            cure = "install albert-tf with its requirements, and the extra for this"
            if error.name == os.environ.get("KERAS_BACKEND"):
                cure = "unset KERAS_BACKEND"
            print_sentence(f"{error.name} is not installed; {cure}.")
            sys.exit(2)
        except Exception as error:
            sentence = of_a_library(error)
            if sentence is None and isinstance(error, ValueError | OSError | RuntimeError):
                sentence = _sentence(error)
            if sentence is None:
                raise
            print_sentence(sentence)
            sys.exit(getattr(error, "exit_status", 2))
        finally:
            if quiet in sys.meta_path:
                sys.meta_path.remove(quiet)


def print_sentence(sentence: str) -> None:
    """Prints a sentence to standard error, after the name of the program."""
    print(f"{PROGRAM}: {printable(with_urls(' '.join(sentence.split())))}", file=sys.stderr)


def _sentence(error: Exception) -> str:
    if not isinstance(error, OSError) or error.filename is None or error.strerror is None:
        return str(error)
    cure = next((cure for kind, cure in _CURES.items() if isinstance(error, kind)), None)
    files = error.filename if error.filename2 is None else f"{error.filename} to {error.filename2}"
    reason = f"{files}: {error.strerror[:1].lower()}{error.strerror[1:]}"
    return f"{reason}; {cure}." if cure else f"{reason}."


def _import_quietly(module, execute) -> None:
    """Hides what TensorFlow writes to file descriptor 2 during import and device discovery.

    `TF_CPP_MIN_LOG_LEVEL` does not apply to it, because it is written before logging is initialised.
    """
    if sys.stderr is None:  # closed by the caller
        execute(module)
        return
    sys.stderr.flush()
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        execute(module)
        module.config.list_physical_devices()
    finally:
        sys.stderr.flush()
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)
