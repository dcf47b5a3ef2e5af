"""Where the golden checkpoints of the reference lie in a layout that is read without TensorFlow."""

import pathlib

import pytest

from .convert_weights import WEIGHTS


@pytest.fixture(scope="session")
def weights() -> pathlib.Path:
    """The folder that `make test-backends` has filled before."""
    return WEIGHTS
