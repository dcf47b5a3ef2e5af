"""The hint for a package that is missing names a command that works."""

import importlib.metadata
import json
import pathlib

import pytest

from albert_tf.files.installation import install_command


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        (None, "albert-tf"),  # from an index
        ({"url": "https://example.org/albert_tf.whl", "archive_info": {}}, "albert-tf"),
        ({"url": "file:///not/there", "dir_info": {}}, "albert-tf"),
        ("here", "here"),
    ],
)
def test_from_where_the_package_came(origin, source, tmp_path, monkeypatch):
    folder = tmp_path / "my checkout"
    folder.mkdir()
    if origin == "here":
        origin, source = {"url": folder.as_uri(), "dir_info": {}}, str(folder)
    installed = tmp_path / "albert_tf-1.dist-info"
    installed.mkdir()
    if origin:
        (installed / "direct_url.json").write_text(json.dumps(origin))
    found = [importlib.metadata.PathDistribution(pathlib.Path(path)) for path in (tmp_path, installed)]
    monkeypatch.setattr(importlib.metadata, "distributions", lambda name: iter(found))
    assert install_command.__wrapped__("serve") == f"pip install '{source}[serve]'"


def test_in_a_checkout_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "distributions", lambda name: iter(()))
    assert install_command.__wrapped__("serve") == "pip install 'albert-tf[serve]'"
