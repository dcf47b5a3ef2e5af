"""Fixtures of several test packages: golden cases by name, and Python in a process of its own."""

import dataclasses
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[1]
# The golden numbers are float32; a GPU's tensor cores round to less than that.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@dataclasses.dataclass(frozen=True)
class GoldenCase:
    """A folder of `tests/golden` and its arrays."""

    folder: pathlib.Path
    arrays: Mapping[str, np.ndarray]


@pytest.fixture(autouse=True, scope="module")
def fresh_keras() -> Iterator[None]:
    """Lets go of what a file's tests have traced and set; the whole suite would need many gigabytes otherwise."""
    yield
    if "keras" in sys.modules:
        sys.modules["keras"].utils.clear_session(free_memory=False)


@pytest.fixture
def golden() -> Callable[[str], GoldenCase]:
    """Opens a case by name; its README says what made it and what each array is."""

    def open_case(name: str) -> GoldenCase:
        folder = ROOT / "tests" / "golden" / name
        with np.load(folder / "io.npz") as arrays:
            return GoldenCase(folder, dict(arrays))

    return open_case


@pytest.fixture(scope="session")
def run_python() -> Callable[..., subprocess.CompletedProcess]:
    """Runs Python with these arguments in a new process that finds the package, and fails where it fails."""

    def run(*arguments, timeout: int = 180) -> subprocess.CompletedProcess:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [sys.executable, *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)
        if done.returncode:
            pytest.fail(f"{command} ended with {done.returncode}:\n{done.stderr[-3000:]}")
        return done

    return run


@pytest.fixture(scope="session")
def folders(tmp_path_factory) -> dict[str, pathlib.Path]:
    """Folders of tiny models by kind."""
    from tests.toy_task import write_classifier, write_pretrained

    root = tmp_path_factory.mktemp("models")
    return {
        "classifier": write_classifier(root / "classifier"),
        "pairs": write_classifier(root / "pairs", pairs=True),
        "regression": write_classifier(root / "regression", problem="regression"),
        "pretrained": write_pretrained(root / "pretrained"),
    }


@pytest.fixture(scope="session")
def exports(folders, tmp_path_factory):
    """ExportReport by kind of model."""
    from albert_tf.export import export_saved_model

    output = tmp_path_factory.mktemp("exports")
    return {kind: export_saved_model(folder, output, kind) for kind, folder in folders.items()}


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory):
    """Text, vocabulary and examples, made once."""
    from tests.small_pipeline import make_small_pipeline

    return make_small_pipeline(tmp_path_factory.mktemp("pipeline"))
