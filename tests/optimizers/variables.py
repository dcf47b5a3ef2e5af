"""Keras variables with the paths that a model would give them."""

import contextlib

import keras


def make_variables(arrays, dtype=None):
    """One variable for each name, with that name as its path."""
    return [_make_variable(name, value, dtype) for name, value in arrays.items()]


def _make_variable(path, value, dtype):
    *scopes, leaf = path.split("/")
    with contextlib.ExitStack() as stack:
        for scope in scopes:
            stack.enter_context(keras.name_scope(scope))
        variable = keras.Variable(value, dtype=dtype, name=leaf)
    assert variable.path == path
    return variable
