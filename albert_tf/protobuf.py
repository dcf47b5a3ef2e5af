"""The wire format of protocol buffers, read and written without the protobuf package.

That package's runtime version depends on the one that another library was built with. Errors are reasons for the caller
to put after the name of the file.

References:
    https://protobuf.dev/programming-guides/encoding
"""

from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED64, LENGTH_DELIMITED, FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BITS = 70


class Field(NamedTuple):
    """One field of a message: number, payload (without the length), and all its bytes."""

    number: int
    payload: bytes
    raw: bytes


def fields(message: bytes) -> Iterator[Field]:
    """Yields the fields of a message; raises ValueError if it is damaged."""
    for number, start, position, end in _positions(message):
        yield Field(number, message[position:end], message[start:end])


def last_payload(message: bytes, number: int) -> bytes:
    """The payload of a field, empty if it is missing; of several the last one counts.

    Raises:
        ValueError: the message is damaged.
    """
    payload = b""
    for found, _, position, end in _positions(message):
        if found == number:
            payload = message[position:end]
    return payload


def read_integer(message: bytes, number: int) -> int:
    """The value of a variable-length integer, unsigned, 0 if it is missing; raises ValueError if it is damaged."""
    payload = last_payload(message, number)
    return read_varint(payload, 0)[0] if payload else 0


def read_varint(content: bytes, position: int) -> tuple[int, int]:
    """Reads the variable-length integer at a position; returns it and the position after it.

    Raises:
        ValueError: it is cut off or too long.
    """
    value = 0
    for shift in range(0, _MAX_VARINT_BITS, 7):
        if position >= len(content):
            break
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError(f"a number does not end, at byte {position} of {len(content)}")


def _positions(message: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yields the number of each field, and the positions of its start, of its payload's start and of its end.

    A SentencePiece model has tens of thousands of fields, nearly all with a tag and a length of one byte each.
    """
    position = 0
    while position < len(message):
        start = position
        tag, position = read_varint(message, position) if message[position] >= 0x80 else (message[position], start + 1)
        kind = tag & 7
        if kind == LENGTH_DELIMITED:
            is_short = position < len(message) and message[position] < 0x80
            length, position = (message[position], position + 1) if is_short else read_varint(message, position)
            end = position + length
        elif kind == VARINT:
            _, end = read_varint(message, position)
        elif kind in (FIXED32, FIXED64):
            end = position + (4 if kind == FIXED32 else 8)
        else:
            raise ValueError(f"a field has the unknown kind {kind}, at byte {start} of {len(message)}")
        if end > len(message):
            raise ValueError(f"a field ends at byte {end} of {len(message)}")
        yield tag >> 3, start, position, end
        position = end


def varint(value: int) -> bytes:
    """Encodes a non-negative integer.

    >>> varint(300)
    b'\\xac\\x02'
    """
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def tag(number: int, kind: int) -> bytes:
    """Encodes the number of a field and the kind of its payload."""
    return varint(number << 3 | kind)


def integer_field(number: int, value: int) -> bytes:
    """Encodes a field that is an integer; negative ones as their 64-bit complement."""
    return tag(number, VARINT) + varint(value & (1 << 64) - 1)


def bytes_field(number: int, payload: bytes) -> bytes:
    """Encodes a field that is a string or a message."""
    return tag(number, LENGTH_DELIMITED) + varint(len(payload)) + payload
