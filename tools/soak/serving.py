"""Four minutes of requests to `albert-tf serve`, some of them malformed, while versions arrive; `make soak-serving`.

Usage: python -m tools.soak.serving [SECONDS]

Every answer must be that of the first version to 1e-5, every malformed request an error of the client, and the server's
memory in the last quarter at most 5 % above that in the second; replaced versions stay for 40 seconds.
"""

import collections
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import httpx

from albert_tf.export import export_onnx, export_saved_model
from tests.toy_task import write_classifier

CLIENTS, SECONDS_PER_VERSION, MODELS = 4, 10, ("saved", "onnx")
TEXTS = ["a fine day", "nothing", "it rained and rained and rained", "so?", "a", "he went to the sea " * 8]
MALFORMED = (
    (b'{"instances": [', 400),
    (b"\xff\xfe\x00", 400),
    (b'{"instances": [1, 2]}', 400),
    (b'{"instances": [["a", "b"], "c"]}', 400),
    (b'{"instances": []}', 400),
    (b'{"signature_name": "no", "instances": ["a"]}', 404),
    (b'{"instances": ["' + b"x" * 11_000_000 + b'"]}', 413),
)


def main(seconds: str = "240") -> int:
    """Returns 1 if anything was not as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        root, source = pathlib.Path(folder, "models"), write_classifier(pathlib.Path(folder, "classifier"))
        export_saved_model(source, root, "saved")
        export_onnx(source, root, "onnx", precisions=["float32"])
        command = [sys.executable, "-m", "albert_tf", "serve", str(root), "--port", "0"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        address = re.search(r"http://[\d.:]+", server.stdout.readline())[0]
        try:
            problems = soak(root, address, server, float(seconds))
        finally:
            server.terminate()
        if server.wait(60) != 0:
            problems["exit code of the server"] += 1
    print("no problem" if not problems else dict(problems))
    return int(bool(problems))


def soak(root: pathlib.Path, address: str, server, seconds: float) -> collections.Counter:
    """Sends requests and publishes versions; returns how often what went wrong."""
    expected = {model: [predict(address, model, text).json()["predictions"] for text in TEXTS] for model in MODELS}
    problems, counts = collections.Counter(), collections.Counter()
    end = time.monotonic() + seconds
    threads = [
        threading.Thread(target=ask, args=(address, expected, problems, counts, end, seed)) for seed in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    memory, version, published = [], 1, time.monotonic()
    while time.monotonic() < end:
        time.sleep(0.5)
        memory.append(resident_bytes(server.pid))
        if time.monotonic() - published > SECONDS_PER_VERSION:
            version, published = version + 1, time.monotonic()
            for model in MODELS:
                publish(root / model, version)
    for thread in threads:
        thread.join()
    quarter = len(memory) // 4
    before, after = statistics.median(memory[quarter : 2 * quarter]), statistics.median(memory[-quarter:])
    print(f"{dict(counts)}, {version} versions; memory {before / 2**20:.0f} then {after / 2**20:.0f} MiB")
    if after > 1.05 * before:
        problems["memory"] += 1
    return problems


def ask(address, expected, problems, counts, end, seed) -> None:
    """One client; one request in eight is malformed."""
    chance = random.Random(seed)
    while time.monotonic() < end:
        model, number = chance.choice(MODELS), chance.randrange(len(TEXTS))
        try:
            if chance.random() < 0.125:
                body, status = chance.choice(MALFORMED)
                reply = httpx.post(f"{address}/v1/models/{model}:predict", content=body, timeout=60)
                counts["malformed"] += 1
                if reply.status_code != status:
                    problems[f"{reply.status_code} instead of {status}"] += 1
            else:
                found = predict(address, model, TEXTS[number]).json()["predictions"]
                counts["answers"] += 1
                if not is_near(found, expected[model][number]):
                    problems[f"wrong answer of {model}"] += 1
        except (httpx.HTTPError, KeyError, ValueError) as error:
            problems[repr(error)[:80]] += 1


def predict(address: str, model: str, text: str) -> httpx.Response:
    """Asks for one text."""
    return httpx.post(f"{address}/v1/models/{model}:predict", json={"instances": [text]}, timeout=60)


def is_near(found, expected) -> bool:
    """Whether two replies are equal, numbers to 1e-5."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(is_near(found[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(is_near, found, expected))
    return abs(found - expected) <= 1e-5 if isinstance(expected, float) else found == expected


def publish(model: pathlib.Path, version: int) -> None:
    """Copies the version before, in one step, and removes the one before that."""
    partial = model.parent.parent / "partial"
    shutil.copytree(model / str(version - 1), partial)
    partial.rename(model / str(version))
    shutil.rmtree(model / str(version - 2), ignore_errors=True)


def resident_bytes(pid: int) -> int:
    """Resident memory of a process."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
