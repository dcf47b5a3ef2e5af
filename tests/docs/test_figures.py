"""The pictures of the pages are what their script draws from the costs, and hold the numbers of the costs."""

import xml.etree.ElementTree as ElementTree

import pytest

from albert_tf import AlbertConfig
from docs import figures


@pytest.mark.parametrize(("name", "content"), figures.files().items(), ids=figures.files())
def test_the_committed_pictures_are_what_the_script_draws(name, content):
    assert (figures.PICTURES / name).read_text(encoding="utf-8") == content


@pytest.mark.parametrize("language", figures.WORDS)
def test_a_picture_shows_the_parameters_of_each_size(language):
    shown = "".join(ElementTree.fromstring(figures.picture(language, "light")).itertext())
    for size in figures.SIZES:
        assert figures.millions(AlbertConfig.from_preset(size).num_parameters()) in shown
    assert "30,000 × 128" in shown
    assert "109 M" in shown


def test_every_language_has_all_words():
    assert len({frozenset(words) for words in figures.WORDS.values()}) == 1
