"""TensorFlow Serving's REST interface, with health, metrics and the playground beside it."""

import asyncio
import contextlib
import dataclasses
import hmac
import logging
import pathlib
from collections.abc import Awaitable, Mapping
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from albert_tf.serving.errors import CODES, QueueFullError, codes_of, message_of
from albert_tf.serving.hosts import Hosts
from albert_tf.serving.metrics import CONTENT_TYPE, Metrics
from albert_tf.serving.options import ServerOptions
from albert_tf.serving.tensor_json import dumps, format_predictions, parse_predict
from albert_tf.serving.versions import ServedModels, ServedVersion
from albert_tf.tasks.outputs import TensorSpec

PLAYGROUND = pathlib.Path(__file__).parent / "playground"
_LARGE = 1 << 20  # bytes of an answer; smaller ones are never too many
_PIECE = 1 << 16  # bytes of an answer that are sent at once
_NO_KEY_NEEDED = ("/", "/playground.js", "/healthz", "/readyz")
_PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; img-src data:; script-src 'self'; style-src 'unsafe-inline'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}
_PATHS = "Malformed request: models answer POST /v1/models/NAME:predict, and GET of /v1/models and /v1/models/NAME."
_DTYPES = {"string": "DT_STRING", "int32": "DT_INT32", "float32": "DT_FLOAT"}
_logger = logging.getLogger(__name__)


class _NameConvertor(StringConvertor):
    """A name that ends before the method."""

    regex = "[^/:]+"


def make_app(models: ServedModels, metrics: Metrics, options: ServerOptions, hosts: Hosts | None = None) -> Starlette:
    """The application; it answers requests for all hosts if `hosts` is None."""
    register_url_convertor("name", _NameConvertor())
    rest = _Rest(models, metrics, options)
    routes = [
        Route("/v1/models", rest.list_models),
        Route("/metrics", rest.write_metrics),
        Route("/healthz", lambda _: _json({"status": "ok"})),
        Route("/readyz", lambda _: _json({"status": "ready"})),  # models are loaded before requests are answered
        Route("/", lambda _: FileResponse(PLAYGROUND / "index.html", headers=_PAGE_HEADERS)),
        Route("/playground.js", lambda _: FileResponse(PLAYGROUND / "playground.js", headers=_PAGE_HEADERS)),
    ]
    for path in ("/v1/models/{name:name}", "/v1/models/{name:name}/versions/{version:name}"):
        routes.append(Route(f"{path}:predict", rest.predict, methods=["POST"]))
        routes.append(Route(f"{path}/metadata", rest.describe_signatures))
        routes.append(Route(path, rest.describe_status))
    errors = {**dict.fromkeys(CODES, _refuse), HTTPException: _refuse_http, Exception: _refuse}
    app = Starlette(False, routes, [Middleware(_Gate, options.api_key, hosts)], errors)
    app.state.read_timeout = options.read_timeout
    return app


class _Gate:
    """Refuses requests for other hosts, and those without the key."""

    def __init__(self, app: ASGIApp, api_key: str | None, hosts: Hosts | None):
        self._app, self._api_key, self._hosts = app, api_key, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, app = Request(scope, receive), self._app
        host, origins = request.headers.get("host", ""), request.headers.getlist("origin")
        if self._hosts and (refusal := self._hosts.refusal(host, origins)):
            app = await _error(request, 403, refusal)
        elif scope["path"] not in _NO_KEY_NEEDED and not self._has_key(request):
            app = await _error(request, 401, "The API key is missing or wrong.", {"www-authenticate": "Bearer"})
        await app(scope, receive, send)

    def _has_key(self, request: Request) -> bool:
        if self._api_key is None:
            return True
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        key = bearer.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")
        return hmac.compare_digest(key.encode("utf-8", "replace"), self._api_key.encode())


class _Rest:
    """Answers requests about models."""

    def __init__(self, models: ServedModels, metrics: Metrics, options: ServerOptions):
        self.models, self.metrics, self.options = models, metrics, options
        self.unread = 0  # bytes of answers that clients are still reading

    async def predict(self, request: Request) -> Response:
        """The outputs of a signature, by row or by name."""
        served = self.models.find(**request.path_params)
        body = await self._read_body(request)
        with self.metrics.measured(served.version.model, "predict"):
            answer = await _unless_disconnected(request, _predict(served, body))
            if len(answer) > _LARGE and self.unread + len(answer) > 8 * self.options.max_answer:
                raise QueueFullError(f"Clients are reading {self.unread:,} bytes of other answers; retry.")
            return _Answer(answer, self)

    async def list_models(self, _: Request) -> Response:
        """The models, their engines and signatures."""
        models = [
            {
                "name": name,
                "version": str(served.version.number),
                "engine": served.engine.name,
                "precision": served.engine.precision,
                "signatures": {key: dataclasses.asdict(value) for key, value in served.engine.signatures.items()},
            }
            for name, served in sorted(self.models.served.items())
        ]
        return _json({"models": models})

    async def describe_status(self, request: Request) -> Response:
        """The state of the version that is served."""
        served = self.models.find(**request.path_params)
        status = {"error_code": "OK", "error_message": ""}
        version = {"version": str(served.version.number), "state": "AVAILABLE", "status": status}
        return _json({"model_version_status": [version]})

    async def describe_signatures(self, request: Request) -> Response:
        """Each signature as a `SignatureDef`."""
        served = self.models.find(**request.path_params)
        signatures = {
            name: {
                "inputs": _tensor_infos(signature.inputs),
                "outputs": _tensor_infos(signature.outputs),
                "method_name": "tensorflow/serving/predict",
                "defaults": {},
            }
            for name, signature in served.engine.signatures.items()
        }
        model = {"name": served.version.model, "signature_name": "", "version": str(served.version.number)}
        return _json({"model_spec": model, "metadata": {"signature_def": {"signature_def": signatures}}})

    async def write_metrics(self, _: Request) -> Response:
        """All metrics, for Prometheus."""
        return Response(self.metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def _read_body(self, request: Request) -> bytes:
        """The body, if it is small enough and arrives in time."""
        limit, timeout = self.options.max_body, self.options.read_timeout
        too_large = HTTPException(413, f"The body must have at most {limit} bytes.")
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


async def _predict(served: ServedVersion, body: bytes) -> bytes:
    """The body of the answer to that of a request; raises ValueError also for NaN."""
    request = await asyncio.to_thread(parse_predict, body, served.engine.signatures)
    outputs = await served.batcher.run(request.signature, request.inputs)
    for name, array in outputs.items():
        if array.dtype != object and np.isnan(array).any():
            raise ValueError(f"`{name}` of the answer is not a number; token ids must be in the vocabulary.")
    return await asyncio.to_thread(format_predictions, outputs, request.by_row)


async def _unless_disconnected(request: Request, answer: Awaitable[bytes]) -> bytes:
    """Awaits an answer; if the client goes away, its rows leave the queue."""
    answering, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            raise ClientDisconnect
        return answering.result()
    finally:
        answering.cancel()
        leaving.cancel()


class _Answer(Response):
    """JSON that is sent in pieces, as fast as the client reads them, and counted as long."""

    def __init__(self, body: bytes, rest: _Rest):
        super().__init__(body, media_type="application/json")
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        timeout, size = self._rest.options.timeout, len(self.body)
        self._rest.unread += size
        try:
            async with asyncio.timeout(timeout):
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                for start in range(0, size, _PIECE):
                    piece, has_more = self.body[start : start + _PIECE], start + _PIECE < size
                    await send({"type": "http.response.body", "body": piece, "more_body": has_more})
        except TimeoutError:  # the server closes the connection of an answer that is not complete
            _logger.warning("A client did not read its answer of %d bytes within %g seconds.", size, timeout)
        finally:
            self._rest.unread -= size


def _tensor_infos(specs: Mapping[str, TensorSpec]) -> dict[str, Any]:
    """Tensors of a signature as a `SignatureDef` has them."""

    def info(name: str, spec: TensorSpec) -> dict[str, Any]:
        sizes = [{"size": str(-1 if size is None else size), "name": ""} for size in spec.shape]
        shape = {"dim": sizes, "unknown_rank": False}
        return {"dtype": _DTYPES[spec.dtype], "tensor_shape": shape, "name": f"{name}:0"}

    return {name: info(name, spec) for name, spec in specs.items()}


def _json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(dumps(value), status, headers, "application/json")


async def _error(request: Request, status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """One sentence, after what the request still sends: closing the connection before would lose the answer."""
    if status != 408:
        with contextlib.suppress(TimeoutError, ClientDisconnect, RuntimeError):  # the last one if all was read
            async with asyncio.timeout(request.app.state.read_timeout):
                async for _ in request.stream():
                    pass
    return _json({"error": message}, status, headers)


async def _refuse(request: Request, error: Exception) -> Response:
    """The answer to a request that failed; an error that is not its client's is logged by uvicorn."""
    status, _ = codes_of(error)
    return await _error(request, status, message_of(error), {"retry-after": "1"} if status == 429 else None)


async def _refuse_http(request: Request, error: HTTPException) -> Response:
    """The answer to a body that was not read, and to paths and methods that do not exist."""
    message = _PATHS if error.status_code in (404, 405) else error.detail
    return await _error(request, error.status_code, message, error.headers)
