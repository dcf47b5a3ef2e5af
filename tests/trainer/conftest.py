"""Fixtures of the trainer's tests."""

import pytest

from tests.small_road import make_small_road


@pytest.fixture(scope="session")
def road(tmp_path_factory):
    """Text, vocabulary and examples, made once."""
    return make_small_road(tmp_path_factory.mktemp("road"))
