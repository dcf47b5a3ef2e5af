"""The wire format is that of the protobuf package, and files with damaged messages are refused by name."""

import struct

import pytest
from google.protobuf import struct_pb2

from albert_tf.protobuf import FIXED64, bytes_field, fields, integer_field, last_payload, read_integer, read_varint, tag
from albert_tf.tokenization import AlbertTokenizer


def test_messages_are_read_as_by_protobuf():
    message = struct_pb2.ListValue(
        values=[{"string_value": "가" * 200}, {"number_value": 0.5}, {"null_value": 0}, {"bool_value": True}]
    )
    text, number, nothing, flag = [field.payload for field in fields(message.SerializeToString())]
    assert last_payload(text, 3).decode() == "가" * 200
    assert struct.unpack("<d", last_payload(number, 2)) == (0.5,)
    assert (read_integer(nothing, 1), read_integer(flag, 4), read_integer(flag, 5)) == (0, 1, 0)


def test_messages_are_written_as_by_protobuf():
    number = tag(2, FIXED64) + struct.pack("<d", 0.5)
    written = b"".join(bytes_field(1, value) for value in (bytes_field(3, b"a" * 300), number, integer_field(4, 1)))
    message = struct_pb2.ListValue(values=[{"string_value": "a" * 300}, {"number_value": 0.5}, {"bool_value": True}])
    assert written == message.SerializeToString()


def test_the_last_of_several_values_counts():
    assert read_integer(integer_field(3, 7) + bytes_field(4, b"") + integer_field(3, 300), 3) == 300


def test_negative_integers_have_64_bits():
    assert read_integer(integer_field(1, -1), 1) == 2**64 - 1


DAMAGED = {
    b"\x0a\x05abc": "a field ends at byte 7 of 5",
    b"\x0b": "a field has the unknown kind 3, at byte 0 of 1",
    b"\x08": "a number does not end, at byte 1 of 1",
    b"\x0a": "a number does not end, at byte 1 of 1",
    b"\x0d\0\0": "a field ends at byte 5 of 3",
    b"\xff" * 2**20: "a number does not end, at byte 10 of 1048576",
}


@pytest.mark.parametrize("content", DAMAGED, ids=DAMAGED.values())
def test_damaged_files_are_refused_by_name_and_at_once(content, tmp_path):
    """A number is read up to ten bytes: to the end of a file, it would take a time quadratic in its length."""
    file = tmp_path / "spiece.model"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=rf"spiece\.model; it cannot be read: {DAMAGED[content]}$"):
        AlbertTokenizer.from_pretrained(file)


def test_numbers_of_64_bits_are_read():
    assert read_varint(b"\xff" * 9 + b"\1\7", 0) == (2**64 - 1, 10)
