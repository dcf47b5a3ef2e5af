"""`albert-tf doctor`: checks that everything that albert-tf needs is installed and compatible."""

import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import typer

from albert_tf.cli.tables import AsJson, print_json, print_table
from albert_tf.files.json import read_json
from albert_tf.progress import progress_line

NAME = "doctor"
_PACKAGES = ("albert-tf", "tensorflow", "tensorflow-text", "keras", "protobuf", "numpy", "sentencepiece", "h5py")
_OPTIONAL = (
    *("huggingface_hub", "onnxruntime", "openvino", "starlette", "apache-beam", "kiwipiepy", "tensorflow-hub"),
    *("matplotlib", "tensorboard"),
)
_CHECKED = ("albert-tf", "tensorflow", "tensorflow-text", "keras")
_TWINS = ("tensorflow-cpu", "tensorflow-intel", "tensorflow-gpu", "tf-nightly", "keras-nightly")
_INSTRUCTIONS = ("avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "bf16")
_MIN_FREE_DISK = 1 << 30
_MAX_SECONDS = 300
# In a process of its own, because a wrong build of TensorFlow ends the process.
_PROBE = """
import json, tensorflow as tf, tensorflow_text, keras
devices = [device.device_type for device in tf.config.list_physical_devices()]
print(json.dumps(devices))
"""


class Check(NamedTuple):
    """Result of one check.

    Attributes:
        name: what was checked.
        finding: what was found.
        cure: what to do; empty if nothing is wrong.
    """

    name: str
    finding: str
    cure: str = ""


def run(as_json: AsJson = False) -> None:
    """Checks versions, devices, memory, disk and known conflicts; exits with 0 if nothing is wrong, else with 1.

    Example: albert-tf doctor

    Example: albert-tf doctor --json
    """
    with progress_line("examine"):
        checks = list(examine())
    if as_json:
        print_json([{**check._asdict(), "passed": not check.cure} for check in checks])
    else:
        rows = (
            (check.name, "wrong" if check.cure else "ok", f"{check.finding}{f'; {check.cure}' if check.cure else ''}")
            for check in checks
        )
        print_table("", ("check", "result", "finding"), rows, num_text_columns=3)
    if any(check.cure for check in checks):
        raise typer.Exit(1)


def examine() -> Iterator[Check]:
    """All checks of this machine and environment."""
    yield Check("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    versions = {name: version for name in _PACKAGES if (version := _version(name))}
    yield Check("packages", ", ".join(f"{name} {version}" for name, version in versions.items()))
    optional = [f"{name} {version}" for name in _OPTIONAL if (version := _version(name))]
    yield Check("optional packages", ", ".join(optional) or "none")
    # As saved_models/requirements-onnx.txt installs it.
    has_tensorflow = not any(map(_version, ("onnxruntime", "openvino"))) or _version("tensorflow") is not None
    yield from _requirements(has_tensorflow)
    yield from _conflicts()
    if has_tensorflow:
        yield from _tensorflow()
    else:
        yield Check(
            "tensorflow", "is not installed: ONNX folders can be used; install albert-tf without --no-deps for more"
        )
    yield _processor()
    yield _memory()
    yield from _disk()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


# === Packages ===


def _requirements(complete: bool) -> Iterator[Check]:
    """Whether the packages that TensorFlow, Keras and albert-tf ask for are installed in versions that they accept.

    Args:
        complete: whether those that are not installed count.
    """
    from packaging.requirements import Requirement

    wrong = {}
    for package in _CHECKED:
        for line in importlib.metadata.requires(package) or () if _version(package) else ():
            requirement = Requirement(line)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
                continue
            version = _version(requirement.name)
            if complete if version is None else not requirement.specifier.contains(version, prereleases=True):
                needed = f"{requirement.name}{requirement.specifier}"
                wrong[needed] = Check(
                    "requirements",
                    f"{package} needs {needed}, but {version or 'nothing'} is installed",
                    f"pip install '{needed}'",
                )
    checked = ", ".join(filter(_version, _CHECKED))
    yield from wrong.values() or [
        Check("requirements", f"of {checked} are {'installed' if complete else 'compatible'}")
    ]


def _conflicts() -> Iterator[Check]:
    """Packages and variables that are known to break TensorFlow or Keras 3."""
    name = "conflicts"
    found = []
    versions = [_version(package) for package in ("tensorflow", "tensorflow-text")]
    if None not in versions and len({str(version).rpartition(".")[0] for version in versions}) > 1:
        cure = f"pip install 'tensorflow-text=={str(versions[0]).rpartition('.')[0]}.*'"
        found.append(Check(name, f"tensorflow {versions[0]} with tensorflow-text {versions[1]}", cure))
    for twin in _TWINS:
        if version := _version(twin):
            cure = f"pip uninstall {twin}, then pip install --force-reinstall --no-deps tensorflow keras"
            found.append(Check(name, f"{twin} {version} overwrites the files of its namesake", cure))
    if version := _version("tensorflow-addons"):
        cure = "pip uninstall tensorflow-addons; albert_tf.optimizers.Lamb takes its place"
        found.append(Check(name, f"tensorflow-addons {version} cannot be imported beside this TensorFlow", cure))
    if os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true"):
        found.append(Check(name, "TF_USE_LEGACY_KERAS makes tf.keras Keras 2", "unset TF_USE_LEGACY_KERAS"))
    if (backend := _backend_of_keras()) != "tensorflow":
        cure = "unset KERAS_BACKEND, or correct keras.json in ~/.keras"
        found.append(Check(name, f"the backend of Keras is {backend}, but training and export need TensorFlow", cure))
    setuptools = _version("setuptools")
    if _version("tensorflow-hub") and setuptools and int(setuptools.partition(".")[0]) >= 81:
        finding = f"tensorflow-hub imports pkg_resources, which setuptools {setuptools} does not have"
        found.append(Check(name, finding, "pip install 'setuptools<81'"))
    yield from found or [Check(name, "none are known")]


def _backend_of_keras() -> str:
    """As Keras finds it, without importing it."""
    file = Path(os.environ.get("KERAS_HOME", "~/.keras")).expanduser() / "keras.json"
    configured = read_json(file).get("backend") if file.is_file() else None
    return os.environ.get("KERAS_BACKEND") or configured or "tensorflow"


# === TensorFlow ===


def _tensorflow() -> Iterator[Check]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}
    environment.pop("TF_USE_LEGACY_KERAS", None)  # a conflict of its own
    command = [sys.executable, "-c", _PROBE]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_MAX_SECONDS)
    except subprocess.TimeoutExpired:
        reason = f"not within {_MAX_SECONDS} seconds"
    else:
        if not done.returncode:
            yield Check("import", "TensorFlow, tensorflow-text and Keras can be imported")
            yield _devices(json.loads(done.stdout.splitlines()[-1]))
            return
        lines = done.stderr.strip().splitlines() or ["no message"]
        reason = f"signal {-done.returncode}" if done.returncode < 0 else lines[-1][:300]
    cure = "pip install --force-reinstall 'tensorflow==2.21.*' 'tensorflow-text==2.21.*' 'keras>=3.14,<3.17'"
    yield Check("import", f"TensorFlow, tensorflow-text and Keras cannot be imported ({reason})", cure)


def _devices(kinds: list[str]) -> Check:
    found = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden in ("", "-1"):
        return Check("devices", f"{found}; GPUs are hidden by CUDA_VISIBLE_DEVICES={hidden}")
    if "GPU" not in kinds and Path("/dev/nvidia0").exists():
        cure = "pip install 'tensorflow[and-cuda]==2.21.*', and check the driver with nvidia-smi"
        return Check("devices", f"{found}, although there is an NVIDIA GPU", cure)
    return Check("devices", found)


# === The machine ===


def _processor() -> Check:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    flags = _words_of("/proc/cpuinfo", ("flags", "Features"))
    known = [name for name in _INSTRUCTIONS if name in flags]
    finding = ", ".join([f"{cores} cores", *([" ".join(known)] if known else [])])
    if flags and platform.machine() == "x86_64" and "avx" not in flags:
        return Check("processor", f"{finding}, no AVX", "use another machine: TensorFlow's wheels need AVX")
    return Check("processor", finding)


def _memory() -> Check:
    sizes = [
        int(words[0]) / 2**20 for name in ("MemAvailable", "MemTotal") if (words := _words_of("/proc/meminfo", (name,)))
    ]
    if len(sizes) != 2:
        return Check("memory", "unknown on this system")
    return Check("memory", f"{sizes[0]:.1f} of {sizes[1]:.1f} GiB are free")


def _words_of(file: str, names: tuple[str, ...]) -> list[str]:
    """The words after the first of these names in a file such as /proc/cpuinfo; empty if there is none."""
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return []
    pairs = (line.partition(":") for line in lines)
    return next((text.split() for key, _, text in pairs if key.strip() in names), [])


def _disk() -> Iterator[Check]:
    cache = os.environ.get("HF_HOME", "~/.cache/huggingface")
    for name, path in {"disk, this folder": Path.cwd(), "disk, downloads": Path(cache).expanduser()}.items():
        existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
        free = shutil.disk_usage(existing).free
        cure = "" if free >= _MIN_FREE_DISK else "delete files, or use another folder"
        yield Check(name, f"{free / 2**30:.1f} GiB are free in {path}", cure)
