"""Folders of tiny models of every kind, and their exports, made once for this room."""

import pathlib

import pytest

from albert_tf.export import export_saved_model
from tests.toy_task import write_classifier, write_pretrained


@pytest.fixture(scope="session")
def folders(tmp_path_factory) -> dict[str, pathlib.Path]:
    """Model folders by kind."""
    root = tmp_path_factory.mktemp("models")
    return {
        "classifier": write_classifier(root / "classifier"),
        "pairs": write_classifier(root / "pairs", pairs=True),
        "regression": write_classifier(root / "regression", problem="regression"),
        "pretrained": write_pretrained(root / "pretrained"),
    }


@pytest.fixture(scope="session")
def exports(folders, tmp_path_factory):
    """What each was exported to: ExportReport by kind."""
    output = tmp_path_factory.mktemp("exports")
    return {kind: export_saved_model(folder, output, kind) for kind, folder in folders.items()}
