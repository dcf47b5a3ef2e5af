"""A corpus, and the examples that `prepare` makes of it."""

import pytest

from albert_tf.data import prepare
from tests.data.small_corpus import LINES, options_for


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """The golden corpus as one file of 50 documents, and a small second file."""
    folder = tmp_path_factory.mktemp("corpus")
    documents = ["\n".join(LINES[start : start + 20]) for start in range(0, 1200, 20)]
    (folder / "a.txt").write_text("\n\n".join(documents[:50]))
    (folder / "b.txt").write_text("\n\n".join(documents[50:]))
    return folder


@pytest.fixture(scope="session")
def prepared(corpus, tmp_path_factory):
    """The report on its examples, which tests leave as they are."""
    return prepare(options_for(corpus, tmp_path_factory.mktemp("prepared") / "examples"))
