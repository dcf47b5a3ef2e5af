"""URLs as paths, against a real S3 server on loopback."""

import pytest

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
