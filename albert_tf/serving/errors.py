"""Errors of requests, and how clients are told of them."""

from starlette.requests import ClientDisconnect


class NotFoundError(Exception):
    """A model, a version or a signature that is not served."""


class QueueFullError(Exception):
    """More rows wait than the queue holds; the client has to try again later."""


_MAX_MESSAGE = 500  # characters of an error, which may quote a text
# HTTP status and name by exception, as TensorFlow Serving pairs them.
CODES = {
    ValueError: (400, "INVALID_ARGUMENT"),
    NotFoundError: (404, "NOT_FOUND"),
    QueueFullError: (429, "RESOURCE_EXHAUSTED"),
    TimeoutError: (504, "DEADLINE_EXCEEDED"),
    ClientDisconnect: (499, "CANCELLED"),
}


def codes_of(error: Exception) -> tuple[int, str]:
    """The HTTP status of an exception, and its name in metrics."""
    return next((codes for kind, codes in CODES.items() if isinstance(error, kind)), (500, "INTERNAL"))


def message_of(error: Exception) -> str:
    """The sentence for the client; of an unexpected exception only that it happened."""
    if not isinstance(error, tuple(CODES)):
        return "The model failed on this request; the log of the server says why."
    message = str(error)
    return message if len(message) <= _MAX_MESSAGE else f"{message[:_MAX_MESSAGE]} ..."
