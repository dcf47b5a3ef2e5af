"""Proves that every name of a package that imports on first use can be imported, and that others are refused."""

import importlib

import pytest

PACKAGES = ("checkpoints", "data", "export", "inference", "optimizers", "tokenization", "trainer")


@pytest.mark.parametrize("package", ["albert_tf", *(f"albert_tf.{name}" for name in PACKAGES)])
def test_names_are_those_for_type_checkers(package):
    module = importlib.import_module(package)
    assert dir(module) == sorted(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match=rf"module '{package}' has no attribute 'TYPE'"):
        getattr(module, "TYPE")  # noqa: B009
