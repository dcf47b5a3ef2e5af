"""TensorFlow Serving's REST interface, with health, metrics and the playground beside it."""

import asyncio
import contextlib
import dataclasses
import functools
import hmac
import logging
import pathlib
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from albert_tf.serving import answers
from albert_tf.serving.errors import QueueFullError, codes_of, message_of
from albert_tf.serving.hosts import HostCheck, Hosts
from albert_tf.serving.metrics import CONTENT_TYPE, Metrics
from albert_tf.serving.options import ServerOptions
from albert_tf.serving.tensor_json import dumps
from albert_tf.serving.versions import ServedModels, ServedVersion

PLAYGROUND = pathlib.Path(__file__).parent / "playground"
# Bytes of a request and its answer that leave much free memory behind; smaller answers are never too many.
_LARGE = 1 << 20
_PIECE = 1 << 16  # bytes of an answer that are sent at once
_NO_KEY_NEEDED = ("/", "/playground.js", "/healthz", "/readyz")
_PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; img-src data:; script-src 'self'; style-src 'unsafe-inline'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}
_NO_SUCH_PATH = "Malformed request: no such path; models answer POST /v1/models/NAME:predict."
_logger = logging.getLogger(__name__)


@dataclasses.dataclass
class ServerState:
    """What the handlers share.

    Attributes:
        models: ServedModels.
        metrics: Metrics.
        options: ServerOptions.
        hosts: the hosts of requests that are answered. None: all.
        ready: whether new requests are welcome.
        unread: bytes of large answers that clients are still reading.
    """

    models: ServedModels
    metrics: Metrics
    options: ServerOptions
    hosts: Hosts | None = None
    ready: bool = True
    unread: int = 0

    def allows(self, headers: Headers) -> bool:
        """Whether a request with these headers has the key."""
        if self.options.api_key is None:
            return True
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        key = bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        return hmac.compare_digest(key.encode("utf-8", "replace"), self.options.api_key.encode())


_Handler = Callable[[ServerState, Request], Awaitable[Response]]


class _NameConvertor(StringConvertor):
    """A name that ends before the method."""

    regex = "[^/:]+"


def make_app(state: ServerState) -> Starlette:
    """The application."""
    register_url_convertor("name", _NameConvertor())
    asked: dict[str, _Handler] = {
        "/v1/models": _models,
        "/healthz": _healthz,
        "/readyz": _readyz,
        "/metrics": _metrics,
        "/": functools.partial(_page, "index.html"),
        "/playground.js": functools.partial(_page, "playground.js"),
    }
    posted: dict[str, _Handler] = {}
    for path in ("/v1/models/{name:name}", "/v1/models/{name:name}/versions/{version:name}"):
        asked[path] = functools.partial(_describe, answers.status_of)
        asked[path + "/metadata"] = functools.partial(_describe, answers.metadata_of)
        posted[path + ":predict"] = _predict
    routes = [_route(state, "GET", path, handler) for path, handler in asked.items()]
    routes += [_route(state, "POST", path, handler) for path, handler in posted.items()]
    checks = [] if state.hosts is None else [Middleware(HostCheck, hosts=state.hosts, refuse=_error)]
    return Starlette(routes=routes, middleware=checks, exception_handlers={HTTPException: _http_error})


def _route(state: ServerState, method: str, path: str, handler: _Handler) -> Route:
    async def endpoint(request: Request) -> Response:
        reply = await answer(request)
        if reply.status_code >= 400 and reply.status_code != 408:
            await _skip_body(state, request)
        return reply

    async def answer(request: Request) -> Response:
        if path not in _NO_KEY_NEEDED and not state.allows(request.headers):
            return _error(401, "The API key is missing or wrong.", {"www-authenticate": "Bearer"})
        try:
            return await handler(state, request)
        except HTTPException as error:
            return _http_error(request, error)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:
            status, _ = codes_of(error)
            if status == 500:
                _logger.exception("%s %s failed.", request.method, request.url.path)
            return _error(status, message_of(error), {"retry-after": "1"} if status == 429 else None)

    return Route(path, endpoint, methods=[method])


# === Models ===


async def _predict(state: ServerState, request: Request) -> Response:
    with state.models.hold(request.path_params["name"], request.path_params.get("version")) as served:
        body = await _read_body(state, request)
        with state.metrics.measured(served.version.model, "predict"):
            answer = await _unless_disconnected(request, answers.predict(served, body))
            if len(answer) > _LARGE and state.unread and state.unread + len(answer) > 8 * state.options.max_answer:
                raise QueueFullError(f"Clients are reading {state.unread:,} bytes of other answers; retry.")
            return _Answer(state, answer)


async def _describe(describe: Callable[[ServedVersion], bytes], state: ServerState, request: Request) -> Response:
    return _json(describe(state.models.find(request.path_params["name"], request.path_params.get("version"))))


async def _models(state: ServerState, _: Request) -> Response:
    models = [
        {
            "name": name,
            "version": str(served.version.number),
            "engine": served.engine.name,
            "precision": served.engine.precision,
            "signatures": {key: dataclasses.asdict(signature) for key, signature in served.engine.signatures.items()},
        }
        for name, served in sorted(state.models.served.items())
    ]
    return _json(dumps({"models": models}))


# === The server ===


async def _healthz(state: ServerState, _: Request) -> Response:
    return _json(b'{"status": "ok"}')


async def _readyz(state: ServerState, _: Request) -> Response:
    return _json(b'{"status": "ready"}') if state.ready else _error(503, "The server is shutting down.")


async def _metrics(state: ServerState, _: Request) -> Response:
    return Response(state.metrics.text(), headers={"content-type": CONTENT_TYPE})


async def _page(file: str, state: ServerState, _: Request) -> Response:
    return FileResponse(PLAYGROUND / file, headers=_PAGE_HEADERS)


# === Requests and replies ===


async def _read_body(state: ServerState, request: Request) -> bytes:
    """The body, if it is small enough and arrives in time."""
    limit, timeout = state.options.max_body, state.options.read_timeout
    too_large = HTTPException(413, f"The body must have at most {limit} bytes.", {"connection": "close"})
    if int(request.headers.get("content-length", 0)) > limit:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(timeout):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise too_large
    except TimeoutError:
        message = f"The body did not arrive within {timeout:g} seconds."
        raise HTTPException(408, message, {"connection": "close"}) from None
    return bytes(body)


async def _skip_body(state: ServerState, request: Request) -> None:
    """Reads what an answered request still sends: closing the connection before would lose the answer."""
    if request.headers.get("expect", "").lower() == "100-continue":  # which sends nothing before it is asked to
        return
    # A RuntimeError says that all was read.
    with contextlib.suppress(TimeoutError, ClientDisconnect, RuntimeError):
        async with asyncio.timeout(state.options.read_timeout):
            async for _ in request.stream():
                pass


class _Answer(Response):
    """JSON that is sent in pieces, as fast as the client reads them."""

    media_type = "application/json"

    def __init__(self, state: ServerState, body: bytes):
        super().__init__(body)
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        timeout, size = self._state.options.timeout, len(self.body)
        counted = size if size > _LARGE else 0
        self._state.unread += counted
        try:
            async with asyncio.timeout(timeout):
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                for start in range(0, size, _PIECE):
                    piece, is_last = self.body[start : start + _PIECE], start + _PIECE >= size
                    await send({"type": "http.response.body", "body": piece, "more_body": not is_last})
        except TimeoutError:  # the server closes the connection of an answer that is not complete
            _logger.warning("A client did not read its answer of %d bytes within %g seconds.", size, timeout)
        finally:
            self._state.unread -= counted


async def _unless_disconnected(request: Request, answer: Awaitable[bytes]) -> bytes:
    """Awaits an answer; if the client goes away, its rows leave the queue."""
    answering = asyncio.ensure_future(answer)
    leaving = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            raise ConnectionError("The client closed the connection.")
        return answering.result()
    finally:
        for task in (answering, leaving):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return Response(dumps({"error": message}), status, headers, "application/json")


def _http_error(request: Request, error: Exception) -> Response:
    """Also the answer to paths and methods that do not exist."""
    status, headers = getattr(error, "status_code", 500), getattr(error, "headers", None)
    allowed = "POST" if "POST" in (headers or {}).get("Allow", "") else "GET"
    wrong_method = f"This path does not take {request.method}; use {allowed}."
    message = {404: _NO_SUCH_PATH, 405: wrong_method}.get(status)
    return _error(status, message or getattr(error, "detail", ""), headers)
