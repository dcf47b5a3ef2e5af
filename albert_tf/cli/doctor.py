"""`albert-tf doctor`: what is installed, what the machine has, and what does not fit together."""

import importlib.metadata
import json
import os
import pathlib
import shutil
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated

import typer

NAME = "doctor"
_REQUIRED = ("tensorflow", "keras", "tensorflow-text", "numpy")
_OPTIONAL = (
    "openvino",
    "onnxruntime",
    "onnx",
    "huggingface_hub",
    "tensorflow-hub",
    "tensorflow-serving-api",
    "setuptools",
)
_INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16")


def run(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Shows versions, devices and memory, and names conflicts with their cures; exits with 1 if there is one.

    Example: albert-tf doctor
    """
    from albert_tf.cli.tables import print_table

    versions = _versions()
    facts = {**versions, **_machine()}
    problems = list(find_problems(versions, os.environ, facts.get("devices", "")))
    if as_json:
        typer.echo(json.dumps({"facts": facts, "problems": problems}, indent=2))
    else:
        print_table("", ("", "found"), facts.items(), num_text_columns=2)
        for problem in problems or ["No problem was found."]:
            typer.echo(problem)
    if problems:
        raise typer.Exit(1)


def find_problems(versions: Mapping[str, str], environment: Mapping[str, str], devices: str) -> Iterator[str]:
    """What does not fit together, a sentence each with its cure.

    Args:
        versions: by name of the package; without those that are not installed.
        environment: the environment's variables.
        devices: those that TensorFlow sees, such as "1 CPU".
    """
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        yield f"Python {versions['Python']} is not supported; use 3.11, 3.12 or 3.13."
    for package in _REQUIRED:
        if package not in versions:
            yield f"{package} is not installed; pip install albert-tf installs it."
    minors = {name: versions[name].split(".")[:2] for name in ("tensorflow", "tensorflow-text") if name in versions}
    if len({tuple(minor) for minor in minors.values()}) > 1:
        text, tensorflow = versions["tensorflow-text"], ".".join(minors["tensorflow"])
        yield f"tensorflow-text {text} does not fit tensorflow; pip install 'tensorflow-text=={tensorflow}.*'."
    if environment.get("TF_USE_LEGACY_KERAS", "0").lower() in ("1", "true"):
        yield "TF_USE_LEGACY_KERAS selects Keras 2, which this package does not use; unset it."
    if environment.get("KERAS_BACKEND", "tensorflow") != "tensorflow":
        yield f"KERAS_BACKEND={environment['KERAS_BACKEND']}: training and export need tensorflow; unset it for them."
    if "tensorflow-hub" in versions and int(versions.get("setuptools", "0").split(".")[0]) > 80:
        yield f"tensorflow-hub does not work with setuptools {versions['setuptools']}; pip install 'setuptools<81'."
    if devices and "GPU" not in devices and pathlib.Path("/proc/driver/nvidia/version").exists():
        yield "There is an NVIDIA driver, but TensorFlow sees no GPU; pip install 'tensorflow[and-cuda]==2.21.*'."


def _versions() -> dict[str, str]:
    """Versions by package, of those that are installed."""
    found = {"albert-tf": importlib.metadata.version("albert-tf"), "Python": sys.version.split()[0]}
    for package in (*_REQUIRED, *_OPTIONAL):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _machine() -> dict[str, str]:
    """Processor, memory, disk and devices, as far as they can be read."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    flags = _values("/proc/cpuinfo").get("flags", "").split()
    found = {"cores": f"{cores}, {' '.join(name for name in _INSTRUCTIONS if name in flags) or 'instructions unknown'}"}
    memory = _values("/proc/meminfo")
    if "MemTotal" in memory:
        total, available = (int(memory[name].split()[0]) / 2**20 for name in ("MemTotal", "MemAvailable"))
        found["memory"] = f"{total:.1f} GiB, {available:.1f} GiB available"
    found["free disk"] = f"{shutil.disk_usage('.').free / 2**30:.1f} GiB"
    try:
        import tensorflow as tf
    except ImportError:
        return found
    devices = [device.device_type for device in tf.config.list_physical_devices()]
    return {**found, "devices": ", ".join(f"{devices.count(kind)} {kind}" for kind in sorted(set(devices)))}


def _values(file: str) -> dict[str, str]:
    """The values of a file of `/proc` by name; of names that come again, the last."""
    if not pathlib.Path(file).exists():
        return {}
    lines = pathlib.Path(file).read_text(encoding="utf-8").splitlines()
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
