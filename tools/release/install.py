"""Installs the wheel into empty environments: `python -m tools.release.install dist [EXTRA ...]`.

With every Python from 3.11 to 3.13 that is there, and the pip of its first release: the package alone, and what each
extra would install. With the first one, each extra is installed as well, or those that are named. Needs a registry.
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

# Each with the pip of its first release.
PYTHONS = {"3.11": "22.3", "3.12": "23.2.1", "3.13": "24.2"}
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
    "cloud": "import upath, s3fs, gcsfs, huggingface_hub, albert_tf.files.urls",
    "docs": "import mkdocs, material, mkdocstrings",
    "hub": "import albert_tf.files.hub, huggingface_hub",
    "korean": "from albert_tf.tokenization.korean import kiwi; import kiwipiepy; kiwipiepy.Kiwi()",
    "onnx": "import onnx, onnxruntime, albert_tf.inference.onnx_network",
    "openvino": "import openvino, albert_tf.inference.onnx_network",
    "report": "import matplotlib, albert_tf.report",
    "serve": "import albert_tf.serving.server",
    "tensorboard": "import tensorboard",
    "tfhub": "import tensorflow_hub",
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


def make_environment(version: str, folder: pathlib.Path) -> pathlib.Path:
    """An empty environment; returns its Python."""
    check(find_python(version), "-m", "venv", folder)
    check(folder / "bin/python", "-m", "pip", "install", "--quiet", f"pip=={PYTHONS[version]}")
    return folder / "bin/python"


def check(*command: object, **options) -> str:
    """What a command prints; ends the program if it fails."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))[:300]} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout


def try_out(version: str, requirement: str, code: str) -> None:
    """Installs, runs code and commands outside the repository, and removes the environment."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        inside = make_environment(version, pathlib.Path(folder, "environment"))
        check(inside, "-m", "pip", "install", "--quiet", requirement)
        check(inside, "-c", code, cwd=folder)
        shown = [check(inside.parent / "albert-tf", *arguments, cwd=folder) for arguments in COMMANDS]
        size = sum(file.stat().st_size for file in pathlib.Path(folder).rglob("*") if not file.is_symlink()) / 1e6
    report(version, requirement, f"{shown[0].strip()}, {size:,.0f} MB", start)


def resolve(version: str, wheel: pathlib.Path) -> None:
    """Finds out what each extra would install; an older pip can search for hours where a newer one takes seconds."""
    with tempfile.TemporaryDirectory() as folder:
        inside = make_environment(version, pathlib.Path(folder))
        for extra in sorted(EXTRAS):
            start, requirement = time.monotonic(), f"{wheel}[{extra}]"
            check(inside, "-m", "pip", "install", "--quiet", "--dry-run", requirement, timeout=1800)
            report(version, requirement, "resolved", start)


def report(version: str, requirement: str, what: str, start: float) -> None:
    name = f"Python {version}, pip {PYTHONS[version]}, {requirement.rpartition('/')[2]}"
    print(f"{name:70} {what}, {time.monotonic() - start:.0f} s", flush=True)


def main(folder: str, *chosen: str) -> None:
    (wheel,) = pathlib.Path(folder).resolve().glob("*.whl")
    metadata = PathDistribution(ZipPath(wheel) / f"{'-'.join(wheel.name.split('-')[:2])}.dist-info").metadata
    extras = set(metadata.get_all("Provides-Extra") or ()) - NOT_FOR_USERS
    if extras != EXTRAS.keys():
        sys.exit(f"EXTRAS in tools/release/install.py must name every extra. They differ in: {extras ^ EXTRAS.keys()}.")
    there = [version for version in PYTHONS if find_python(version)]
    for version in PYTHONS.keys() - there:
        print(f"Python {version} not here, not tried")
    for version in () if chosen else there:
        try_out(version, str(wheel), MINIMAL)
        resolve(version, wheel)
    for extra in chosen or sorted(EXTRAS):
        try_out(there[0], f"{wheel}[{extra}]", MINIMAL + EXTRAS[extra])


if __name__ == "__main__":
    main(*sys.argv[1:])
