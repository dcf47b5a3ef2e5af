"""A server in one process: uvicorn, and a graceful shutdown."""

import asyncio
import functools
import logging
import os
import socket
from collections.abc import Callable

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from albert_tf.serving.batching import Batcher
from albert_tf.serving.engine import load_engine
from albert_tf.serving.hosts import Hosts, is_loopback
from albert_tf.serving.metrics import Metrics
from albert_tf.serving.options import ServerOptions
from albert_tf.serving.rest import make_app
from albert_tf.serving.versions import ModelRoot, ServedModels, why_not_served

# Connections at a time: with the default size of bodies they hold at most 2 GiB.
_MAX_CONNECTIONS = 512
# Seconds for the headers of a request, and for what is left of a body after the answer. Longer than uvicorn lets idle
# connections live, so that these are closed in order. What is sent of an answer, 128 KiB at most, may be read this
# slowly besides.
CLIENT_SECONDS, BYTES_PER_SECOND = 10, 1 << 12
_logger = logging.getLogger(__name__)


async def serve(folder: str | os.PathLike, options: ServerOptions, announce: Callable[[str], None]) -> None:
    """Serves the models in a folder until SIGTERM or SIGINT.

    Args:
        folder: a folder of models, a model, or a version.
        options: ServerOptions.
        announce: called with one line once the server accepts requests.

    Raises:
        ValueError: the folder has no model that can be loaded, or an address is taken.
    """
    with listen(options.host, options.port) as listening:  # a port that is taken is found before models are loaded
        address = listening.getsockname()[0]
        hosts = Hosts.of_server(address, options.allowed_hosts)
        if not is_loopback(address) and options.api_key is None:
            _logger.warning("Anyone who can reach %s can use the models; set --api-key-file for a key.", options.host)
        metrics = Metrics()
        models = await _load_models(folder, options, metrics)
        config = uvicorn.Config(
            make_app(models, metrics, options, hosts),
            http=_TimedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level=logging.WARNING,
            access_log=False,
            server_header=False,
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_graceful_shutdown=round(options.drain),
        )
        server = _Server(config)
        watching = asyncio.create_task(models.watch())
        with server.capture_signals():
            announce(_started(listening, options.host, models))
            await server.serve([listening])
        watching.cancel()
        models.close()
        _logger.info("Stopped.")


async def _load_models(folder: str | os.PathLike, options: ServerOptions, metrics: Metrics) -> ServedModels:
    models = ServedModels(
        ModelRoot(folder),
        lambda version: load_engine(version, options.engine, options.precision, options.max_batch_size),
        functools.partial(Batcher, options=options, metrics=metrics),
    )
    await models.refresh()
    if not models.served:
        reasons = "; ".join(models.failed.values()) or why_not_served(folder)
        raise ValueError(f"No model in {folder} can be served: {reasons.removesuffix('.')}.")
    return models


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at an address; raises ValueError if the address is taken or unknown."""
    listening = None
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # Only for sockets that name TCP, asyncio switches off Nagle's algorithm, which delays each answer by 40 ms.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()  # now, so that early requests wait instead of being refused
        return listening
    except OSError as error:
        if listening is not None:
            listening.close()
        raise ValueError(
            f"{host}:{port} could not be opened ({error.strerror}); choose another --host or --port."
        ) from None


def _started(listening: socket.socket, host: str, models: ServedModels) -> str:
    served = ", ".join(
        f"{name} {model.version.number} ({', '.join(filter(None, (model.engine.name, model.engine.precision)))})"
        for name, model in sorted(models.served.items())
    )
    address = f"[{host}]" if ":" in host else host
    return f"http://{address}:{listening.getsockname()[1]}/ serves {served}"


class _Server(uvicorn.Server):
    """Signals do not reach the process again afterwards, so that it exits with 0."""

    def handle_exit(self, sig, frame) -> None:
        _logger.info("Stopping; running requests get up to %g seconds.", self.config.timeout_graceful_shutdown)
        self.should_exit = True


class _TimedProtocol(H11Protocol):
    """Ends connections that are late with headers, with a body that nobody reads, or with reading an answer.

    uvicorn has no limit for these.
    """

    def connection_made(self, transport) -> None:
        super().connection_made(transport)
        self._expect_request()

    def on_response_complete(self) -> None:
        self._expect_request()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._giving_up = self.loop.call_later(self._patience(), self.transport.abort)

    def resume_writing(self) -> None:
        self._giving_up.cancel()
        super().resume_writing()

    def _patience(self) -> float:
        return CLIENT_SECONDS + self.transport.get_write_buffer_size() / BYTES_PER_SECOND

    def _expect_request(self) -> None:
        last = self.cycle

        def abort_if_late() -> None:  # not `close`, which waits until the client has read everything
            if self.cycle is last:
                self.transport.abort()

        self.loop.call_later(self._patience(), abort_if_late)
