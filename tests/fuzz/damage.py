"""Ways to damage a file: some know its format, so that the damage gets past checksums and lengths."""

import copy
import gzip
import io
import json
import random
import struct
import zipfile
from collections.abc import Callable

Damage = Callable[[bytes, random.Random], bytes]

_EXTREMES = (
    *(None, True, False, -1, 0, 1, 2, 3, 7, 64, 1000, 2**31, 2**40, 2**63, 2**64, 10**30, 1e-30, 1e308),
    *(float("nan"), float("inf"), "", "a", "gelu", "../x", "F32", "F8_E4M3", "I64", "a\nb", "\ud800", "\0", "a" * 5000),
    *([], {}, [0], [0, 8], [[]], {"a": 1}),
)


def anything(content: bytes, chance: random.Random) -> bytes:
    """Bytes flipped, cut off, taken out or doubled; mostly near the ends, where formats keep their tables."""
    damaged = bytearray(content)
    kind = chance.choice(("flip", "flip", "flip", "cut", "take out", "double"))
    if kind == "cut":
        return content[: _position(content, chance)]
    if kind == "flip":
        for _ in range(chance.randint(1, 8)):
            if damaged:
                damaged[_position(damaged, chance)] = chance.choice((0, 255, 127, chance.randrange(256)))
        return bytes(damaged)
    start, length = _position(content, chance), chance.randint(1, 64)
    part = damaged[start : start + length]
    damaged[start : start + length] = b"" if kind == "take out" else part * 2
    return bytes(damaged)


def words(content: bytes, chance: random.Random) -> bytes:
    """Numbers of 2 to 8 bytes in tables replaced: addresses, sizes, counts."""
    damaged = bytearray(content)
    for _ in range(chance.randint(1, 3)):
        width = chance.choice((2, 4, 8))
        start = chance.randrange(0, max(len(damaged) - 8, 1), 2)
        if chance.random() < 0.7 and (tables := _tables(content)):
            start = chance.choice(tables) + 2 * chance.randrange(32)
        known = (0, 1, 2**15, 2 ** (8 * width) - 1, 2 ** (8 * width - 1), len(content), start, chance.randrange(2**16))
        damaged[start : start + width] = (chance.choice(known) % 2 ** (8 * width)).to_bytes(width, "little")
    return bytes(damaged)


def json_values(content: bytes, chance: random.Random) -> bytes:
    """A value of a JSON file replaced, taken out or put in, so that it stays JSON."""
    if chance.random() < 0.01:
        return chance.choice((b"[", b'{"a":')) * 20_000
    values = json.loads(content)
    for _ in range(chance.randint(1, 3)):
        _change_value(values, chance)
    return json.dumps(values).encode()


def json_lines(content: bytes, chance: random.Random) -> bytes:
    """One line of a file of JSON values changed."""
    lines = content.splitlines(keepends=True)
    number = chance.randrange(len(lines))
    lines[number] = json_values(lines[number], chance) + b"\n"
    return b"".join(lines)


def toml_values(content: bytes, chance: random.Random) -> bytes:
    """Values of a TOML file replaced."""
    lines = content.decode().splitlines()
    choices = (
        "-1",
        "0",
        "10" + "0" * 30,
        "1e308",
        "nan",
        "inf",
        '"a"',
        "[]",
        "{}",
        "true",
        "[[1]]",
        '"../x"',
        "1979-05-27",
    )
    for _ in range(chance.randint(1, 3)):
        number = chance.choice([number for number, line in enumerate(lines) if " = " in line])
        lines[number] = f"{lines[number].split(' = ')[0]} = {chance.choice(choices)}"
    if chance.random() < 0.02:
        lines.append("a = " + "[" * 20_000)
    return "\n".join(lines).encode()


def safetensors_header(content: bytes, chance: random.Random) -> bytes:
    """The header changed and its length set right."""
    length = struct.unpack("<Q", content[:8])[0]
    header = json_values(content[8 : 8 + length], chance)
    return struct.pack("<Q", len(header)) + header + content[8 + length :]


def in_zip(**damage_of: Damage) -> Damage:
    """Damages one entry of an archive, by the end of its name, and sets the archive's checksums right."""
    endings = {ending.replace("_", "."): damage for ending, damage in damage_of.items()}

    def damage(content: bytes, chance: random.Random) -> bytes:
        chosen, new = chance.choice(list(endings)), io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(new, "w") as archive:
            for name in source.namelist():
                part = source.read(name)
                archive.writestr(name, endings[chosen](part, chance) if name.endswith(chosen) else part)
        return new.getvalue()

    return damage


def in_gzip(content: bytes, chance: random.Random) -> bytes:
    """The text damaged, or followed by a megabyte of one letter, and compressed again."""
    text = gzip.decompress(content)
    return gzip.compress(text + b"a" * 2**20 if chance.random() < 0.05 else anything(text, chance))


def _position(content: bytes, chance: random.Random) -> int:
    last, near = max(len(content) - 1, 0), min(4000, max(len(content) - 1, 0))
    return chance.choice((chance.randint(0, near), last - chance.randint(0, near), chance.randint(0, last)))


def _tables(content: bytes) -> list[int]:
    """Where the tables of an HDF5 file begin."""
    found = []
    for signature in (b"TREE", b"SNOD", b"HEAP", b"GCOL", b"OHDR", b"FRHP", b"FHDB", b"FHIB", b"\x89HDF"):
        start = content.find(signature)
        while start >= 0:
            found.append(start)
            start = content.find(signature, start + 1)
    return found


def _change_value(values, chance: random.Random) -> None:
    """Goes down at random and changes what is there."""
    while True:
        keys = list(values) if isinstance(values, dict) else list(range(len(values)))
        key = chance.choice(keys) if keys else None
        if key is None or not isinstance(values[key], dict | list) or chance.random() < 0.2:
            break
        values = values[key]
    if isinstance(values, dict) and (key is None or chance.random() < 0.15):
        values[chance.choice(("new", "dtype", "share", "model_type", "weight_map", ""))] = _extreme(chance)
    elif key is None:
        values.append(_extreme(chance))
    elif chance.random() < 0.15:
        del values[key]
    else:
        values[key] = _extreme(chance)


def _extreme(chance: random.Random):
    return copy.deepcopy(chance.choice(_EXTREMES))  # lists among them may be changed further
