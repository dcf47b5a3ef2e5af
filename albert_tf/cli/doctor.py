"""`albert-tf doctor`: versions of packages, and the devices that TensorFlow finds."""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator

from albert_tf.cli.tables import print_table
from albert_tf.inference.progress import progress_line

NAME = "doctor"
_PACKAGES = (
    *("albert-tf", "tensorflow", "tensorflow-text", "keras", "protobuf", "numpy", "sentencepiece", "h5py"),
    *("huggingface_hub", "onnxruntime", "openvino", "starlette", "apache-beam", "kiwipiepy", "tensorflow-hub"),
    *("matplotlib", "tensorboard"),
)
# In a process of its own, because a wrong build of TensorFlow ends the process.
_PROBE = """
import json, tensorflow as tf, tensorflow_text, keras
from albert_tf.layers.kernels import lacks_flash_attention
devices = [device.device_type for device in tf.config.list_physical_devices()]
print(json.dumps([devices, lacks_flash_attention()]))
"""


def run() -> None:
    """Shows versions and devices; exits with 2 if TensorFlow cannot be imported.

    `pip check` says whether the versions fit each other.

    Example: albert-tf doctor
    """
    with progress_line("examine"):
        rows = list(examine())
    print_table("", ("", "found"), rows, num_text_columns=2)


def examine() -> Iterator[tuple[str, str]]:
    """What this machine and environment have; raises RuntimeError if TensorFlow cannot be imported."""
    yield "machine", f"python {platform.python_version()} on {platform.system()} {platform.machine()}"
    yield "packages", ", ".join(f"{name} {version}" for name in _PACKAGES if (version := _version(name)))
    if _version("tensorflow") is None:  # as saved_models/requirements-onnx.txt installs it
        yield "tensorflow", "is not installed: only ONNX folders can be used"
        return
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}
    environment.pop("TF_USE_LEGACY_KERAS", None)
    done = subprocess.run([sys.executable, "-c", _PROBE], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1][:300]
        reason = f"signal {-done.returncode}" if done.returncode < 0 else reason
        cure = "pip install --force-reinstall 'tensorflow==2.21.*' 'tensorflow-text==2.21.*' 'keras>=3.14,<3.17'"
        raise RuntimeError(f"TensorFlow, tensorflow-text and Keras cannot be imported ({reason}); {cure}")
    kinds, lack = json.loads(done.stdout.splitlines()[-1])
    yield "devices", ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    flash = "cuDNN's flash attention, where XLA compiles for bfloat16 or float16"
    yield "attention", f"in the plain form: {lack}" if lack else flash


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
