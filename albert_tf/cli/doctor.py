"""`albert-tf doctor`: checks that everything that albert-tf needs is installed and compatible."""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from albert_tf.cli.tables import AsJson, Check, print_checks
from albert_tf.files.json import read_json
from albert_tf.inference.progress import progress_line

NAME = "doctor"
_PACKAGES = (
    *("albert-tf", "tensorflow", "tensorflow-text", "keras", "protobuf", "numpy", "sentencepiece", "h5py"),
    *("huggingface_hub", "onnxruntime", "openvino", "starlette", "apache-beam", "kiwipiepy", "tensorflow-hub"),
    *("matplotlib", "tensorboard"),
)
_CHECKED = ("albert-tf", "tensorflow", "tensorflow-text", "keras", "tensorflow-hub")
_TWINS = ("tensorflow-cpu", "tensorflow-intel", "tensorflow-gpu", "tf-nightly", "keras-nightly")
_MAX_SECONDS = 300
# In a process of its own, because a wrong build of TensorFlow ends the process.
_PROBE = """
import json, tensorflow as tf, tensorflow_text, keras
from albert_tf.layers.kernels import lacks_flash_attention
devices = [device.device_type for device in tf.config.list_physical_devices()]
print(json.dumps([devices, lacks_flash_attention()]))
"""


def run(as_json: AsJson = False) -> None:
    """Checks versions, devices and known conflicts; exits with 0 if nothing is wrong, else with 2.

    Example: albert-tf doctor

    Example: albert-tf doctor --json
    """
    with progress_line("examine"):
        checks = list(examine())
    print_checks(checks, as_json)


def examine() -> Iterator[Check]:
    """All checks of this machine and environment."""
    yield Check("machine", f"python {platform.python_version()} on {platform.system()} {platform.machine()}{_size()}")
    yield Check("packages", ", ".join(f"{name} {version}" for name in _PACKAGES if (version := _version(name))))
    # As saved_models/requirements-onnx.txt installs it.
    has_tensorflow = not any(map(_version, ("onnxruntime", "openvino"))) or _version("tensorflow") is not None
    for name, problems in (("requirements", _requirements(has_tensorflow)), ("conflicts", _conflicts())):
        wrong = [Check(name, f"{problem}; {cure}", False) for problem, cure in problems]
        yield from wrong or [Check(name, "met" if name == "requirements" else "none are known")]
    if has_tensorflow:
        yield from _tensorflow()
    else:
        missing = "is not installed: ONNX folders can be used; install albert-tf without --no-deps for more"
        yield Check("tensorflow", missing)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _size() -> str:
    """Cores and, where it is known, free memory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    file = Path("/proc/meminfo")
    sizes = dict(line.split(":") for line in file.read_text().splitlines()) if file.exists() else {}
    free = f", {int(sizes['MemAvailable'].split()[0]) / 2**20:.1f} GiB are free" if "MemAvailable" in sizes else ""
    return f", {cores} cores{free}"


def _requirements(complete: bool) -> Iterator[tuple[str, str]]:
    """What packages ask for and is not installed in such a version, and the cure.

    Args:
        complete: whether those that are not installed count.
    """
    from packaging.requirements import Requirement

    for package in filter(_version, _CHECKED):
        for requirement in map(Requirement, importlib.metadata.requires(package) or []):
            version = _version(requirement.name)
            is_met = not complete if version is None else requirement.specifier.contains(version, prereleases=True)
            if not is_met and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
                needed = f"{requirement.name}{requirement.specifier}"
                yield f"{package} needs {needed}, but {version or 'nothing'} is installed", f"pip install '{needed}'"


def _conflicts() -> Iterator[tuple[str, str]]:
    """Packages and variables that are known to break TensorFlow or Keras 3, and the cures."""
    for twin in filter(_version, _TWINS):
        cure = f"pip uninstall {twin}, then pip install --force-reinstall --no-deps tensorflow keras"
        yield f"{twin} overwrites the files of its namesake", cure
    if _version("tensorflow-addons"):
        cure = "pip uninstall tensorflow-addons; albert_tf.optimizers.Lamb takes its place"
        yield "tensorflow-addons cannot be imported beside this TensorFlow", cure
    setuptools = _version("setuptools")
    if _version("tensorflow-hub") and setuptools and int(setuptools.partition(".")[0]) >= 81:
        problem = f"tensorflow-hub imports pkg_resources, which setuptools {setuptools} does not have"
        yield problem, "pip install 'setuptools<81'"
    if os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true"):
        yield "TF_USE_LEGACY_KERAS makes tf.keras Keras 2", "unset TF_USE_LEGACY_KERAS"
    # As Keras finds it, without importing it.
    file = Path(os.environ.get("KERAS_HOME", "~/.keras")).expanduser() / "keras.json"
    configured = read_json(file).get("backend") if file.is_file() else None
    if (backend := os.environ.get("KERAS_BACKEND") or configured or "tensorflow") != "tensorflow":
        cure = "unset KERAS_BACKEND, or correct keras.json in ~/.keras"
        yield f"the backend of Keras is {backend}, but training and export need TensorFlow", cure


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
            kinds, lack = json.loads(done.stdout.splitlines()[-1])
            yield _devices(kinds)
            yield _attention(lack)
            return
        lines = done.stderr.strip().splitlines() or ["no message"]
        reason = f"signal {-done.returncode}" if done.returncode < 0 else lines[-1][:300]
    cure = "pip install --force-reinstall 'tensorflow==2.21.*' 'tensorflow-text==2.21.*' 'keras>=3.14,<3.17'"
    if reason == "signal 4":
        cure = "use another machine, because TensorFlow's wheels need a processor with AVX"
    yield Check("import", f"TensorFlow, tensorflow-text and Keras cannot be imported ({reason}); {cure}", False)


def _devices(kinds: list[str]) -> Check:
    shown = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden in ("", "-1"):
        return Check("devices", f"{shown}; GPUs are hidden by CUDA_VISIBLE_DEVICES={hidden}")
    if "GPU" not in kinds and Path("/dev/nvidia0").exists():
        cure = "pip install 'tensorflow[and-cuda]==2.21.*', and check the driver with nvidia-smi"
        return Check("devices", f"{shown}, although there is an NVIDIA GPU; {cure}", False)
    return Check("devices", shown)


def _attention(lack: str) -> Check:
    if lack:
        return Check("attention", f"in the plain form: {lack}")
    return Check("attention", "cuDNN's flash attention, where XLA compiles for bfloat16 or float16")
