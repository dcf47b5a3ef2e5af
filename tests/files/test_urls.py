"""URLs as paths, against a real S3 server on loopback."""

import contextlib
import pathlib
import subprocess
import sys

import pytest

from albert_tf.files import claims
from albert_tf.files.atomic import atomic_write, sha256
from albert_tf.files.hub import model_folder
from albert_tf.files.json import read_json
from albert_tf.files.mirrors import mirrored, upload_changes
from albert_tf.files.text import find_files, read_lines
from albert_tf.files.urls import as_url, borrowed, local_copy, location, with_urls
from tests.s3_server import FaultyS3, environment


@pytest.fixture(scope="module")
def server():
    server = FaultyS3()
    with environment(server.url):
        yield server
    server.stop()


@pytest.fixture
def bucket(server, request):
    """The URL of a bucket of its own."""
    import s3fs

    name = "".join(letter for letter in request.node.name.lower() if letter.isalnum())[:60]
    s3fs.S3FileSystem().mkdir(name)
    return f"s3://{name}"
