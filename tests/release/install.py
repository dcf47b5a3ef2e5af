"""Installs the wheel into empty environments: `python -m tests.release.install dist [EXTRA ...]`.

With every Python from 3.11 to 3.13 that is there, the package alone; with the first one, each extra as well, or those
that are named. Needs uv, or else venv and pip, and a package registry. Pythons are not downloaded.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PathDistribution
from zipfile import Path as ZipPath

PYTHONS = ("3.11", "3.12", "3.13")
# What works with the package alone: nothing heavy on import, a tokenizer, a model, and the commands.
MINIMAL = """
import sys
import albert_tf
assert "tensorflow" not in sys.modules and "keras" not in sys.modules
tokenizer = albert_tf.AlbertTokenizer.english()
assert tokenizer.encode("Hello world") == [10975, 126], tokenizer.encode("Hello world")
config = albert_tf.AlbertConfig.from_preset("tiny").replace(vocab_size=len(tokenizer))
model = albert_tf.AlbertForSequenceClassification(config, labels=["bad", "good"])
assert model(tokenizer(["Hello world"]))["logits"].shape == (1, 2)
"""
COMMANDS = (["--version"], ["--help"], ["info", "base_v2"], ["train-tokenizer", "--help"])
# What each extra is for.
EXTRAS = {
    "beam": "import albert_tf.data.preparation.beam, apache_beam",
    "cloud": "import upath, s3fs, gcsfs, huggingface_hub, albert_tf.files.mirrors",
    "docs": "import mkdocs, material, mkdocstrings",
    "hub": "import albert_tf.files.hub, huggingface_hub",
    "korean": "from albert_tf.tokenization.korean import kiwi; import kiwipiepy; kiwipiepy.Kiwi()",
    "onnx": "import onnx, onnxruntime, albert_tf.inference.onnx_network",
    "openvino": "import openvino, albert_tf.inference.onnx_network",
    "report": "import matplotlib, albert_tf.report",
    "serve": "import albert_tf.serving.server",
    "tensorboard": "import tensorboard",
    "tfhub": "import tensorflow_hub",
    "wordpiece": "import tokenizers, albert_tf.tokenization.training.wordpiece",
}
NOT_FOR_USERS = {"dev"}


def find_python(version: str) -> str | None:
    """An interpreter of this version that runs."""
    kept = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    candidates = [f"python{version}", *map(str, sorted(kept.glob(f"{version}.*/bin/python")))]
    for candidate in filter(None, map(shutil.which, candidates)):
        shown = subprocess.run([candidate, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
        if shown.returncode == 0:
            return shown.stdout.strip()
    return None


def make_environment(python: str, folder: pathlib.Path, requirement: str) -> pathlib.Path:
    """An environment with the requirement alone; returns its Python."""
    inside = folder / "bin/python"
    if shutil.which("uv"):
        check("uv", "venv", "--quiet", "--no-project", "--python", python, folder)
        check("uv", "pip", "install", "--quiet", "--python", inside, requirement)
    else:
        check(python, "-m", "venv", folder)
        check(inside, "-m", "pip", "install", "--quiet", requirement)
    return inside


def check(*command: object, **options) -> str:
    """What a command prints; ends the program if it fails."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))[:300]} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout


def try_out(name: str, python: str, requirement: str, code: str) -> None:
    """Installs, runs code and commands outside the repository, and removes the environment."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        inside = make_environment(python, pathlib.Path(folder, "environment"), requirement)
        check(inside, "-c", code, cwd=folder)
        shown = [check(inside.parent / "albert-tf", *arguments, cwd=folder) for arguments in COMMANDS]
        size = sum(file.stat().st_size for file in pathlib.Path(folder).rglob("*") if not file.is_symlink()) / 1e6
    print(f"{name:24} {shown[0].strip()}, {size:,.0f} MB, {time.monotonic() - start:.0f} s", flush=True)


def main(folder: str, *chosen: str) -> None:
    (wheel,) = pathlib.Path(folder).resolve().glob("*.whl")
    metadata = PathDistribution(ZipPath(wheel) / f"{'-'.join(wheel.name.split('-')[:2])}.dist-info").metadata
    extras = set(metadata.get_all("Provides-Extra") or ()) - NOT_FOR_USERS
    if extras != EXTRAS.keys():
        sys.exit(f"EXTRAS in tests/release/install.py must name every extra. They differ in: {extras ^ EXTRAS.keys()}.")
    pythons = {version: find_python(version) for version in PYTHONS}
    there = {version: python for version, python in pythons.items() if python is not None}
    for version in pythons.keys() - there.keys():
        print(f"Python {version:17} not here, not tried")
    for version, python in {} if chosen else there.items():
        try_out(f"Python {version}", python, str(wheel), MINIMAL)
    version, python = next(iter(there.items()))
    for extra in chosen or sorted(EXTRAS):
        try_out(f"Python {version}, [{extra}]", python, f"{wheel}[{extra}]", MINIMAL + EXTRAS[extra])


if __name__ == "__main__":
    main(*sys.argv[1:])
