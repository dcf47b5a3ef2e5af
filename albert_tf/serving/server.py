"""A server in one process: uvicorn, and a graceful shutdown."""

import asyncio
import contextlib
import functools
import logging
import os
import socket
from collections.abc import Callable, Iterator

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from albert_tf.serving.batching import Batcher
from albert_tf.serving.engine import load_engine
from albert_tf.serving.hosts import Hosts
from albert_tf.serving.metrics import Metrics
from albert_tf.serving.options import ServerOptions
from albert_tf.serving.rest import ServerState, make_app
from albert_tf.serving.versions import ModelRoot, ServedModels, why_not_served

# Connections at a time: with the default size of bodies they hold at most 2 GiB.
_MAX_CONNECTIONS = 512
# For the headers of a request, for what is left of its body after the answer, and to read on in an answer. Longer than
# uvicorn lets idle connections live, so that these are closed in order.
CLIENT_SECONDS = 10
_logger = logging.getLogger(__name__)


async def serve(
    folder: str | os.PathLike,
    options: ServerOptions,
    announce: Callable[[str], None],
    stop: asyncio.Event | None = None,
) -> None:
    """Serves the models in a folder until SIGTERM or SIGINT.

    Args:
        folder: a folder of models, a model, or a version.
        options: ServerOptions.
        announce: called with one line once the server accepts requests.
        stop: ends the server when it is set, as signals do.

    Raises:
        ValueError: the folder has no model that can be loaded, or an address is taken.
    """
    with bind(options.host, options.port) as listening:  # a port that is taken is found before models are loaded
        await _serve(folder, options, announce, stop or asyncio.Event(), listening)


async def _serve(
    folder: str | os.PathLike,
    options: ServerOptions,
    announce: Callable[[str], None],
    stop: asyncio.Event,
    listening: socket.socket,
) -> None:
    metrics = Metrics()
    models = await _load_models(folder, options, metrics)
    hosts = Hosts.of_server(listening.getsockname()[0], options.allowed_hosts)
    state = ServerState(models, metrics, options, hosts)
    config = uvicorn.Config(
        make_app(state),
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
    server = _Server(config, stop)
    watching = asyncio.create_task(models.watch())
    with server.capture_signals():
        with _opening(options.host, options.port):
            listening.listen()  # now, so that a request right after the announcement waits instead of being refused
        serving = asyncio.create_task(server.serve([listening]))
        announce(_started(listening, options.host, models))
        await asyncio.wait((serving, asyncio.create_task(stop.wait())), return_when=asyncio.FIRST_COMPLETED)
        _logger.info("Stopping; running requests get up to %g seconds.", options.drain)
        state.ready = False
        watching.cancel()
        server.should_exit = True
        await serving
    models.close()
    _logger.info("Stopped.")


async def _load_models(folder: str | os.PathLike, options: ServerOptions, metrics: Metrics) -> ServedModels:
    models = ServedModels(
        ModelRoot(folder),
        lambda version: load_engine(
            version, options.engine, options.precision, options.threads, options.max_batch_size
        ),
        functools.partial(Batcher, options=options, metrics=metrics),
    )
    await models.refresh()
    if not models.served:
        reasons = "; ".join(models.failed.values()) or why_not_served(folder)
        raise ValueError(f"No model in {folder} can be served: {reasons.removesuffix('.')}.")
    return models


def bind(host: str, port: int) -> socket.socket:
    """A socket that can listen at an address; raises ValueError if the address is taken or unknown."""
    with _opening(host, port), contextlib.ExitStack() as closing:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # Only for sockets that name TCP, asyncio switches off Nagle's algorithm, which delays each answer by 40 ms.
        listening = closing.enter_context(socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP))
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        closing.pop_all()  # it stays open
    return listening


@contextlib.contextmanager
def _opening(host: str, port: int) -> Iterator[None]:
    """Turns errors into a ValueError; those of `listen`, too: two servers may bind a port before one listens."""
    try:
        yield
    except OSError as error:
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
    """Tells of SIGTERM and SIGINT by an event, so that the process exits with 0."""

    def __init__(self, config: uvicorn.Config, stop: asyncio.Event):
        super().__init__(config)
        self._stop, self._loop = stop, asyncio.get_running_loop()

    def handle_exit(self, sig, frame) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)


class _TimedProtocol(H11Protocol):
    """Ends connections whose clients take too long to send headers or the rest of a body, or to read an answer."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport) -> None:
        super().connection_made(transport)
        self._expect_client()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect_client()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_client()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _expect_client(self) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(CLIENT_SECONDS, self._abort_unless_answering)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def _abort_unless_answering(self) -> None:
        """Not `close`, which waits until the client has read everything."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if not is_answering or self.flow.write_paused or self.transport.is_closing():
            self.transport.abort()
