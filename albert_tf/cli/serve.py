"""`albert-tf serve`: answers requests over HTTP."""

import codecs
import logging
import os
from pathlib import Path
from types import ModuleType
from typing import Annotated, Literal

import typer

from albert_tf.files.installation import install_command
from albert_tf.files.urls import with_urls
from albert_tf.inference.progress import progress_line

NAME = "serve"
REMAINS = "the server has ended"
KEY_VARIABLE = "ALBERT_TF_API_KEY"
_Engine = Annotated[Literal["auto", "tensorflow", "openvino", "onnxruntime"], typer.Option()]
_Precision = Annotated[
    Literal["auto", "float32", "bfloat16", "float16", "int8"],
    typer.Option(help="Of ONNX models, bfloat16 for OpenVINO; auto: bfloat16 if the CPU has AMX, else the most exact."),
]


def run(
    folder: Annotated[Path, typer.Argument(help="Folder of exported models, of one model, or of one version.")],
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for other machines.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 for a free one.", min=0, max=65535)] = 8501,
    engine: _Engine = "auto",
    precision: _Precision = "auto",
    max_batch_size: Annotated[int, typer.Option(help="Rows of a batch.", min=1)] = 32,
    max_batch_tokens: Annotated[int, typer.Option(help="Tokens of a batch of many rows; more for GPUs.", min=1)] = 1024,
    max_queue: Annotated[int, typer.Option(help="Rows that may wait; more are refused.", min=1)] = 1024,
    timeout: Annotated[float, typer.Option(help="Seconds after which a request fails.", min=0.001)] = 30.0,
    max_body_mb: Annotated[float, typer.Option(help="Largest request in MiB.", min=0.001)] = 4.0,
    max_answer_mb: Annotated[float, typer.Option(help="Largest answer in MiB, as arrays.", min=0.001)] = 64.0,
    api_key_file: Annotated[
        Path | None, typer.Option(help=f"File with the key that requests must have; or set {KEY_VARIABLE}.")
    ] = None,
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="Name besides localhost by which clients reach the server; repeatable.")
    ] = None,
) -> None:
    """Answers requests as TensorFlow Serving does, and reloads a model when a new version is exported.

    Example: albert-tf serve saved_models

    Example: albert-tf serve saved_models/task --port 8080
    """
    import asyncio

    api_key = _api_key(api_key_file)
    server = _import_server()
    from albert_tf.serving.options import ServerOptions

    logging.basicConfig(level=logging.INFO, handlers=[_handler()])
    options = ServerOptions(
        host=host,
        port=port,
        engine=engine,
        precision=precision,
        max_batch_size=max_batch_size,
        max_batch_tokens=max_batch_tokens,
        max_queue=max_queue,
        timeout=timeout,
        max_answer=round(max_answer_mb * 2**20),
        max_body=round(max_body_mb * 2**20),
        api_key=api_key,
        allowed_hosts=tuple(allowed_host or ()),
    )
    logging.info("Loading the models in %s.", folder)
    asyncio.run(server.serve(folder, options, typer.echo))


def _handler() -> logging.Handler:
    """Writes logs to stderr, without the secrets that URLs may have."""

    class Formatter(logging.Formatter):
        def format(self, record):
            return with_urls(super().format(record))

    handler = logging.StreamHandler()
    handler.setFormatter(Formatter("%(asctime)s %(levelname)s %(message)s"))
    return handler


def _import_server() -> ModuleType:
    """The server's module; raises ValueError if a package that it needs is not installed."""
    try:
        with progress_line("start"):
            from albert_tf.serving import server
    except ModuleNotFoundError as error:
        raise ValueError(
            f"The server needs {error.name}, which is not installed; run: {install_command('serve')}."
        ) from None
    return server


def _api_key(file: Path | None) -> str | None:
    """The key in a file or, without one, in the environment; raises ValueError for one that no header can bring."""
    content = os.fsencode(os.environ.get(KEY_VARIABLE, "")) if file is None else file.read_bytes()
    if file is None and not content:
        return None
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    key = content.decode("utf-16" if is_utf16 else "utf-8-sig", "replace").strip()
    if not key or not (key.isascii() and key.isprintable()):
        raise ValueError(
            f"{file or KEY_VARIABLE} must have one line of ASCII letters, digits and signs, the key; write it anew."
        )
    return key
