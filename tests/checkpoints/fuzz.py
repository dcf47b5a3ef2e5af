"""Damages checkpoints in thousands of ways and reads them: `python -m tests.checkpoints.fuzz [COUNT]`.

A reader may succeed or raise a ValueError of one line. Anything else is a find: another exception, a crash, a hang, or
memory above twice the files (plus a fixed allowance, for these files are small). A find is named by target and seed.
"""

import argparse
import collections
import json
import pathlib
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable

import google_crc32c

from albert_tf import checkpoints

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
FORMATS = "hf_for_pretraining_formats"
ALLOWANCE = 1_500_000  # bytes: instructions, names and error messages weigh more than the tensors of a small file
SECONDS = 20
FOOTER, TRAILER = 48, 5  # of a table of TensorFlow's, and of a block in it
_EXTREMES = (
    *(None, True, False, -1, 0, 1, 2, 3, 7, 64, 1000, 2**31, 2**40, 2**63, 2**64, 10**30, 1e-30, 1e308),
    *(
        float("nan"),
        float("inf"),
        "",
        "a",
        "gelu",
        "../x",
        "F32",
        "I64",
        "a\nb",
        "\ud800",
        "\0",
        "a" * 5000,
        [],
        {},
        [0],
        [0, 8],
        [[]],
    ),
)

Damage = Callable[[bytes, random.Random], bytes]


# === Damage ===


def anything(content: bytes, chance: random.Random) -> bytes:
    """Bytes flipped, cut off, taken out or doubled; mostly near the ends, where formats keep their tables."""
    damaged = bytearray(content)
    kind = chance.choice(("flip", "flip", "flip", "cut", "take out", "double"))
    if kind == "cut":
        return content[: _place(content, chance)]
    if kind == "flip":
        for _ in range(chance.randint(1, 8)):
            if damaged:
                damaged[_place(damaged, chance)] = chance.choice((0, 255, 127, chance.randrange(256)))
        return bytes(damaged)
    start, length = _place(content, chance), chance.randint(1, 64)
    part = damaged[start : start + length]
    damaged[start : start + length] = b"" if kind == "take out" else part * 2
    return bytes(damaged)


def json_values(content: bytes, chance: random.Random) -> bytes:
    """A value of a JSON file replaced, taken out or put in, so that it stays JSON."""
    if chance.random() < 0.01:
        return chance.choice((b"[", b'{"a":')) * 20_000
    values = json.loads(content)
    for _ in range(chance.randint(1, 3)):
        _change_value(values, chance)
    return json.dumps(values).encode()


def safetensors_header(content: bytes, chance: random.Random) -> bytes:
    """The header changed and its length set right."""
    length = struct.unpack("<Q", content[:8])[0]
    header = json_values(content[8 : 8 + length], chance)
    return struct.pack("<Q", len(header)) + header + content[8 + length :]


def table(content: bytes, chance: random.Random) -> bytes:
    """Bytes of a TensorFlow index changed and its checksums set right."""
    damaged = bytearray(content)
    meta, meta_size, index, index_size = _varints(content[-FOOTER:], 4)
    for _ in range(chance.randint(1, 4)):
        damaged[chance.randrange(meta)] = chance.choice((0, 1, 255, 127, chance.randrange(256)))
    for start, size in ((0, meta - TRAILER), (meta, meta_size), (index, index_size)):
        end = start + size + 1  # the kind of compression is part of it
        checksum = google_crc32c.value(bytes(damaged[start:end]))
        masked = ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF
        damaged[end : end + 4] = struct.pack("<I", masked)
    return bytes(damaged)


def zipped_pickle(content: bytes, chance: random.Random) -> bytes:
    """The instructions of a PyTorch archive damaged and its checksums set right."""
    with tempfile.TemporaryFile() as old, tempfile.TemporaryFile() as new:
        old.write(content)
        with zipfile.ZipFile(old) as source, zipfile.ZipFile(new, "w") as archive:
            for name in source.namelist():
                part = source.read(name)
                archive.writestr(name, anything(part, chance) if name.endswith("data.pkl") else part)
        new.seek(0)
        return new.read()


def _place(content: bytes, chance: random.Random) -> int:
    last, near = max(len(content) - 1, 0), min(4000, max(len(content) - 1, 0))
    return chance.choice((chance.randint(0, near), last - chance.randint(0, near), chance.randint(0, last)))


def _change_value(values, chance: random.Random) -> None:
    """Goes down at random and changes what is there."""
    while True:
        keys = list(values) if isinstance(values, dict) else list(range(len(values)))
        key = chance.choice(keys) if keys else None
        if key is None or not isinstance(values[key], dict | list) or chance.random() < 0.2:
            break
        values = values[key]
    if isinstance(values, dict) and (key is None or chance.random() < 0.15):
        values[chance.choice(("new", "dtype", "share", "model_type", "weight_map", ""))] = chance.choice(_EXTREMES)
    elif key is None:
        values.append(chance.choice(_EXTREMES))
    elif chance.random() < 0.15:
        del values[key]
    else:
        values[key] = chance.choice(_EXTREMES)


def _varints(content: bytes, count: int) -> list[int]:
    found, place = [], 0
    for _ in range(count):
        number = shift = 0
        while True:
            number |= (content[place] & 127) << shift
            shift, place = shift + 7, place + 1
            if content[place - 1] < 128:
                break
        found.append(number)
    return found


# === Targets ===

# Folder, the file to damage in it, and how; a third of the inputs of each is damaged as `anything` does.
TARGETS: dict[str, tuple[str, str, Damage]] = {
    "safetensors": ("hf_for_pretraining", "model.safetensors", safetensors_header),
    "half precision": (f"{FORMATS}/bf16", "model.safetensors", safetensors_header),
    "index of shards": (f"{FORMATS}/sharded", "model.safetensors.index.json", json_values),
    "shard": (f"{FORMATS}/sharded", "model-00002-of-00004.safetensors", safetensors_header),
    "config.json": ("hf_for_pretraining", "config.json", json_values),
    "albert_config.json": ("M1_small", "albert_config.json", json_values),
    "TensorFlow index": ("M1_small", "model.ckpt.index", table),
    "TensorFlow index, groups": ("M2_groups", "model.ckpt.index", table),
    "TensorFlow data": ("M1_small", "model.ckpt.data-00000-of-00001", anything),
    "PyTorch zip": (f"{FORMATS}/zip", "pytorch_model.bin", zipped_pickle),
    "PyTorch stream": (f"{FORMATS}/legacy", "pytorch_model.bin", anything),
    "PyTorch stream, old names": (f"{FORMATS}/old_names", "pytorch_model.bin", anything),
}


def damaged(target: str, seed: int) -> bytes:
    """One input; the same for the same seed."""
    folder, name, damage = TARGETS[target]
    chance = random.Random(f"{target} {seed}")
    return (anything if chance.random() < 1 / 3 else damage)((GOLDEN / folder / name).read_bytes(), chance)


def copy_of(target: str, place: pathlib.Path) -> pathlib.Path:
    """The target's folder, made writable; where a folder has no more than the two files, it has no more here."""
    folder = place / target.replace(" ", "_")
    folder.mkdir()
    for file in (GOLDEN / TARGETS[target][0]).iterdir():
        if file.is_file() and file.suffix not in (".npz", ".md"):
            shutil.copyfile(file, folder / file.name)
    return folder


def read_damaged(target: str, content: bytes, folder: pathlib.Path) -> str:
    """Reads the folder with the damaged file in it; returns `read` or `refused`, and raises where neither is true."""
    (folder / TARGETS[target][1]).write_bytes(content)
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            checkpoints.read(folder)
        outcome = "read"
    except ValueError as error:
        if "\n" in str(error) or len(str(error)) > 2000:
            raise RuntimeError(f"an error that is no sentence: {str(error)[:300]!r}") from error
        outcome = "refused"
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    size = sum(file.stat().st_size for file in folder.iterdir())
    if peak > 2 * size + ALLOWANCE:
        raise RuntimeError(f"{peak:,} bytes of memory for {size:,} bytes of files")
    return outcome


# === The long run ===


def run_target(target: str, start: int, count: int) -> int:
    """In a process of its own: prints a line for each find, then the outcomes; a hang ends the process."""
    finds = collections.Counter()
    with tempfile.TemporaryDirectory() as place:
        folder = copy_of(target, pathlib.Path(place))
        checkpoints.read(folder)  # as it is; what this imports does not count
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for seed in range(start, start + count):
            pathlib.Path(place, "seed").write_text(str(seed))
            print(seed, file=sys.stderr)
            signal.alarm(SECONDS)
            try:
                finds[read_damaged(target, damaged(target, seed), folder)] += 1
            except Exception as error:
                finds["finds"] += 1
                print(f"  FIND {target} seed {seed}: {type(error).__name__}: {str(error)[:200]!r}")
        signal.alarm(0)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(finds.items()))
    print(f"{target}: {outcomes}; the process grew by {grown:.0f} MiB", flush=True)
    return finds["finds"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=10_800, help="inputs over all targets")
    parser.add_argument("--target", choices=TARGETS, help="this one alone, in this process")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    arguments = parser.parse_args()
    if arguments.target:
        return run_target(arguments.target, arguments.start, arguments.count)
    each, finds = -(-arguments.count // len(TARGETS)), 0
    for target in TARGETS:
        command = [sys.executable, "-m", "tests.checkpoints.fuzz", str(each), "--target", target]
        done = subprocess.run(
            [*command, "--start", str(arguments.start)], stderr=subprocess.PIPE, text=True, check=False
        )
        if "Traceback" in done.stderr:
            raise RuntimeError(done.stderr[-2000:])
        if done.returncode < 0:
            last = [line for line in done.stderr.splitlines() if line.isdigit()][-1:]
            print(f"  FIND {target} seed {last}: the process ended by signal {-done.returncode}", flush=True)
        finds += done.returncode != 0
    print(f"{each * len(TARGETS):,} inputs, {finds} targets with finds")
    return int(finds > 0)


if __name__ == "__main__":
    sys.exit(min(main(), 100))
