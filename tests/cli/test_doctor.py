"""What `albert-tf doctor` finds."""

import json

import pytest

from albert_tf.cli.doctor import find_problems
from tests.cli.terminal import output_of

GOOD = {"Python": "3.11.7", "tensorflow": "2.21.0", "tensorflow-text": "2.21.1", "keras": "3.15.1", "numpy": "2.1.0"}


def test_it_shows_what_is_here():
    found = json.loads(output_of("doctor", "--json"))
    assert found["problems"] == []
    assert found["facts"]["tensorflow"].startswith("2.21")
    assert "CPU" in found["facts"]["devices"]
    assert "GiB available" in found["facts"]["memory"]
    assert "No problem was found." in output_of("doctor")


@pytest.mark.parametrize(
    ("changes", "environment", "problem"),
    [
        ({}, {}, None),
        ({"tensorflow-text": "2.20.0"}, {}, r"pip install 'tensorflow-text==2.21.*'"),
        ({"keras": None}, {}, "keras is not installed"),
        ({}, {"TF_USE_LEGACY_KERAS": "1"}, "unset it"),
        ({}, {"KERAS_BACKEND": "jax"}, "KERAS_BACKEND=jax"),
        ({"tensorflow-hub": "0.16.1", "setuptools": "82.0"}, {}, "pip install 'setuptools<81'"),
        ({"tensorflow-hub": "0.16.1", "setuptools": "80.9"}, {}, None),
    ],
)
def test_conflicts_have_a_cure(changes, environment, problem):
    versions = {name: version for name, version in {**GOOD, **changes}.items() if version is not None}
    found = list(find_problems(versions, environment, "1 CPU"))
    assert len(found) == (problem is not None)
    assert problem is None or problem in found[0]
