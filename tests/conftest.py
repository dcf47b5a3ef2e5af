"""Fixtures of several test packages: golden cases by name, and Python in a process of its own."""

import dataclasses
import gc
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from tests.parameters import MadeOnce

ROOT = pathlib.Path(__file__).parents[1]
# The golden numbers are float32; a GPU's tensor cores round to less than that.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Models are tiny, and the workers of a run share few processors.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "2")
os.environ.setdefault("OMP_NUM_THREADS", "1")


# Files and packages that take longest; workers take files in order, so these come first.
_SLOWEST = (
    *("models/test_mirrored.py", "demos/test_novels.py", "docs/test_notebooks.py", "cli/test_buckets.py"),
    *("trainer/test_workers.py", "trainer", "export", "docs", "cli", "models", "tokenization", "data", "inference"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts files so that all workers end at about the same time."""
    ranks = {ROOT / "tests" / name: rank for rank, name in enumerate(_SLOWEST)}
    items.sort(key=lambda item: min(ranks.get(path, len(ranks)) for path in (item.path, *item.path.parents)))


def pytest_configure() -> None:
    """Turns off garbage collection while tests are collected, because what is imported then stays."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leaves what was imported alone when Python looks for garbage, and has it look less often."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(100_000, 20, 100)


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


@pytest.fixture
def accelerator(monkeypatch) -> None:
    """Lets the package take this machine's CPU for an accelerator; XLA compiles for either."""
    import keras

    monkeypatch.setattr(keras.distribution, "list_devices", lambda *_: ["gpu:0"])


OTHER_TASKS = ("questions", "questions_beam", "tags", "choices", "embedding")


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory) -> Callable[[str], pathlib.Path]:
    """Makes folders by name that all workers of a run share."""
    base = tmp_path_factory.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def make(name: str) -> pathlib.Path:
        (root / "shared" / name).mkdir(parents=True, exist_ok=True)
        return root / "shared" / name

    return make


@pytest.fixture(scope="session")
def folders(shared_folder) -> Mapping[str, pathlib.Path]:
    """Folders of tiny models by kind, each made when it is first asked for."""
    from albert_tf import AlbertForMaskedLM
    from tests.toy_task import write_classifier, write_pretrained, write_task

    root = shared_folder("models")
    return MadeOnce(
        {
            "classifier": lambda: write_classifier(root / "classifier"),
            "pairs": lambda: write_classifier(root / "pairs", pairs=True),
            "regression": lambda: write_classifier(root / "regression", problem="regression"),
            "pretrained": lambda: write_pretrained(root / "pretrained"),
            "masked": lambda: write_pretrained(root / "masked", kind=AlbertForMaskedLM),
            "multi_label": lambda: write_classifier(root / "multi_label", problem="multi_label", labels=["a", "b"]),
            **{kind: lambda kind=kind: write_task(root / kind, kind) for kind in OTHER_TASKS},
        },
        root,
    )


@pytest.fixture(scope="session")
def exports(folders, shared_folder) -> Mapping[str, Any]:
    """ExportReport of a SavedModel by kind of model, each made when it is first asked for."""
    from albert_tf.export import export_saved_model

    output = shared_folder("exports")

    def export(kind):
        return export_saved_model(folders[kind], output, kind, attention=kind == "classifier")

    return MadeOnce({kind: lambda kind=kind: export(kind) for kind in folders}, output)


@pytest.fixture(scope="session")
def onnx_folders(folders, shared_folder) -> Mapping[str, pathlib.Path]:
    """Folders of ONNX files by kind of model, each made when it is first asked for."""
    from albert_tf.export import export_onnx

    output = shared_folder("onnx")

    def export(kind):
        return export_onnx(folders[kind], output, kind, precisions=["float32"]).folder

    return MadeOnce({kind: lambda kind=kind: export(kind) for kind in folders}, output)


@pytest.fixture(scope="session")
def pipeline(shared_folder):
    """Text, vocabulary and examples, made once."""
    from tests.small_pipeline import make_small_pipeline

    folder = shared_folder("pipeline")
    return MadeOnce({"pipeline": lambda: make_small_pipeline(folder)}, folder)["pipeline"]
