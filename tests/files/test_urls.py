"""URLs as paths, against a real S3 server on loopback."""

import hashlib
import http.server
import pathlib
import shutil
import threading

import fsspec
import pytest

from albert_tf.cli.paths import check_exists
from albert_tf.data import PrepareOptions, prepare, pretraining_dataset
from albert_tf.data.manifest import HashedFile, Manifest
from albert_tf.data.sources import find_shards
from albert_tf.export.versions import publish
from albert_tf.files import urls
from albert_tf.files.atomic import atomic_write, sha256
from albert_tf.files.hub import model_folder
from albert_tf.files.json import read_json
from albert_tf.files.origins import name_of
from albert_tf.files.text import find_files, read_lines
from albert_tf.files.urls import (
    as_url,
    borrowed,
    file_infos,
    local_copy,
    location,
    make_folder,
    mirrored,
    process_folder,
    upload_changes,
    with_urls,
)
from albert_tf.trainer.run_folder import differences, plain_urls, write_recipe
from tests.cli.terminal import output_of
from tests.s3_server import FaultyS3, environment
from tests.small_pipeline import NOVEL


@pytest.fixture(scope="module")
def server():
    server = FaultyS3()
    with environment(server.url):
        yield server
    server.stop()


@pytest.fixture
def bucket(server, request):
    """The URL of a bucket of its own."""
    name = f"bucket-{hashlib.sha256(request.node.name.encode()).hexdigest()[:8]}"
    fsspec.filesystem("s3").mkdir(name)
    return f"s3://{name}"


def put(url, text="x"):
    atomic_write(location(url), text.encode())


def test_only_urls_are_urls():
    given = {"s3://a/b": "s3://a/b", pathlib.Path("s3://a/b"): "s3://a/b", pathlib.Path("gs:/a"): "gs://a"}
    assert {path: as_url(path) for path in given} == given
    for path in ("a/b", pathlib.Path("a/b"), "/a:b/c", pathlib.Path("/s3:/a"), "C:\\a", "s3:/a", None, ["s3://a"]):
        assert as_url(path) is None
    assert location("file:///tmp/a") == location(pathlib.Path("file:///tmp/a")) == pathlib.Path("/tmp/a")


def test_texts_are_found_in_the_order_of_paths(bucket, tmp_path):
    names = ("b.txt", "a/z.txt", "a.txt", "a/b/c.txt", "no.bin", "a b.txt")
    for name in names:
        put(f"{bucket}/{name}", name)
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    for pattern in ("", "/*.txt", "/a", "/**/*.txt", "/a.txt"):
        here = [path.relative_to(tmp_path).as_posix() for path in find_files([f"{tmp_path}{pattern}"])]
        found = find_files([f"{bucket}{pattern}"])
        assert [str(path).removeprefix(f"{bucket}/") for path in found] == here
        assert [line.text for path in found for line in read_lines(path)] == here


def test_a_copy_follows_what_it_is_a_copy_of(bucket):
    put(f"{bucket}/model/config.json", '{"a": 1}')
    put(f"{bucket}/model/checkpoints/big")
    folder = model_folder(f"{bucket}/model")
    assert [path.name for path in folder.iterdir()] == ["config.json"]
    first = (folder / "config.json").stat().st_ino
    assert model_folder(f"{bucket}/model") == folder
    assert (folder / "config.json").stat().st_ino == first, "it was downloaded again"
    put(f"{bucket}/model/config.json", '{"a": 2}')
    assert read_json(local_copy(f"{bucket}/model") / "config.json") == {"a": 2}
    location(f"{bucket}/model/config.json").unlink()
    put(f"{bucket}/model/b.json", "{}")
    assert sorted(path.name for path in local_copy(f"{bucket}/model").rglob("*.json")) == ["b.json"]
    assert with_urls(f"{folder}/b.json is not a model.") == f"{bucket}/model/b.json is not a model."


def test_a_model_file_comes_with_the_files_that_belong_to_it(bucket):
    for name in ("a.ckpt.index", "a.ckpt.data-00000-of-00001", "albert_config.json", "b.ckpt.index", "other.bin"):
        put(f"{bucket}/{name}")
    prefix = model_folder(f"{bucket}/a.ckpt")
    assert prefix.name == "a.ckpt"
    found = sorted(path.name for path in prefix.parent.iterdir())
    assert found == ["a.ckpt.data-00000-of-00001", "a.ckpt.index", "albert_config.json"]


def test_a_borrowed_file_goes(bucket):
    put(f"{bucket}/a.txt", "text")
    with borrowed(location(f"{bucket}/a.txt")) as file:
        assert file.read_text() == "text"
    assert not file.exists()
    assert sha256(location(f"{bucket}/a.txt")) == hashlib.sha256(b"text").hexdigest()


def test_a_folder_is_uploaded_metadata_last(bucket, monkeypatch):
    sent = []
    original = urls.upload
    monkeypatch.setattr(urls, "upload", lambda file, remote: sent.append(file.name) or original(file, remote))
    with mirrored(f"{bucket}/run") as folder:
        for name in ("recipe.json", "checkpoints/step-1/state.json", "checkpoints/step-1/state.data", ".hidden/a"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(name)
        upload_changes(folder / "checkpoints")
        assert sent[0] == "state.data"
        assert {*sent[1:]} == {"state.json", "recipe.json"}
        upload_changes(folder)
        assert len(sent) == 3, "nothing has changed"
        shutil.rmtree(folder / "checkpoints")
        (folder / "recipe.json").write_text("longer than before")
    assert sorted(file_infos(location(f"{bucket}/run"))) == ["recipe.json"]
    with mirrored(f"{bucket}/run") as again:
        assert (again / "recipe.json").read_text() == "longer than before"

    def fail():
        with mirrored(f"{bucket}/run") as again:
            (again / "log").write_text("until the error")
            raise ValueError(f"{again}/a is wrong")

    with pytest.raises(ValueError, match="is wrong") as error:
        fail()
    assert with_urls(str(error.value)) == f"{bucket}/run/a is wrong"
    assert not list(process_folder().glob("mirror-*/s3/*/run"))
    assert sorted(file_infos(location(f"{bucket}/run"))) == ["log", "recipe.json"]


def test_the_recipe_of_a_run_is_uploaded_at_its_start(bucket):
    with mirrored(f"{bucket}/run") as folder:
        write_recipe(folder, {"seed": 1})
        assert location(f"{bucket}/run/recipe.json").exists()


def test_a_file_is_no_folder_to_write(bucket):
    put(f"{bucket}/file")
    with pytest.raises(ValueError, match=f"^{bucket}/file is a file; give another folder"), mirrored(f"{bucket}/file"):
        pass


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    path = tmp_path_factory.mktemp("examples")
    lines = [line for line in NOVEL.read_text(encoding="utf-8").splitlines() if line.strip()]
    (path / "text.txt").write_text("\n\n".join(lines[:200]) + "\n", encoding="utf-8")
    prepare(PrepareOptions(inputs=[path / "text.txt"], output_dir=path / "a", max_seq_length=32, num_shards=30))
    return path / "a"


@pytest.fixture
def examples(bucket, prepared):
    """Folders of equal examples, on disk and in a bucket."""
    fsspec.filesystem("s3").put(f"{prepared}/", f"{bucket}/a/", recursive=True)
    return prepared, f"{bucket}/a"


def ids(folder):
    return [inputs["input_ids"].numpy().tolist() for inputs, _ in pretraining_dataset(folder, 32, repeat=False)]


def test_shards_are_copied_once(examples, server):
    local, remote = examples
    expected = ids(local)
    assert ids(remote) == expected
    requests = server.requests
    assert ids(remote) == expected
    assert server.requests - requests < 20, "shards were copied again"


MISTAKES = {
    "s3://no-such-bucket/a": "there is no s3://no-such-bucket; create it",
    "{bucket}/none": "does not exist; check the URL",
    "klingon://a/b": "could not be read .*klingon",
    "http://127.0.0.1:9/a": "could not be read .*Cannot connect .*check the URL and the connection",
}


@pytest.mark.parametrize("url", MISTAKES)
def test_mistakes_are_named(url, bucket):
    with pytest.raises(ValueError, match=MISTAKES[url]):
        local_copy(url.format(bucket=bucket))
    with pytest.raises(ValueError, match=r"http://127\.0\.0\.1:9/a can only be read; give a folder"):
        make_folder(location("http://127.0.0.1:9/a"))


SECRET = "xyzzy"


@pytest.fixture
def signed():
    """The beginning of URLs of a server that has /ok alone, and wants a signature; /500 and such give that status."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            path, _, query = self.path.partition("?")
            first = path.split("/")[1]
            refused = int(first) if first.isdigit() else 404 if path == "/none" else 403
            self.send_response(200 if SECRET in query and path == "/ok.txt" else refused)
            self.send_header("Content-Length", "5")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(b"rain\n")

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


READERS = [
    *(local_copy, read_json, Manifest.load, find_shards, lambda url: find_files([url])),
    *(check_exists, lambda url: publish(pathlib.Path("a"), location(url))),
]
REFUSED, FAILED = "access was refused ", r"could not be read \(.*\); check the URL and the connection"


@pytest.mark.parametrize("status", [401, 403, 404, 410, 429, 500, 503])
@pytest.mark.parametrize("read", READERS[:-1])
def test_what_is_refused_or_fails_over_http_is_not_missing(signed, status, read):
    missing = "does not exist|is not a folder of prepared examples"
    expected = REFUSED if status < 404 else missing if status in (404, 410) else FAILED
    with pytest.raises(ValueError, match=f"^{signed}/{status}[ /].*({expected})"):
        read(f"{signed}/{status}")


@pytest.mark.parametrize("read", READERS)
def test_what_is_refused_or_fails_in_a_bucket_is_not_missing(bucket, server, read, monkeypatch):
    put(f"{bucket}/a/manifest.json", "{}")
    once = {**urls._OPTIONS["s3"], "config_kwargs": {"retries": {"mode": "standard", "max_attempts": 1}}}
    monkeypatch.setitem(urls._OPTIONS, "s3", once)
    monkeypatch.setattr(urls, "_SECONDS_TO_SAY", 0)
    tried = rf"{FAILED}\. It was tried for \d+ seconds\.$"
    for fault, expected in (("refused", f"{REFUSED}.*check the key and its rights"), ("broken", tried)):
        server.fault = fault
        with pytest.raises(ValueError, match=f"^{bucket}/a.* {expected}"):
            read(f"{bucket}/a")
        server.fault = ""


QUERY = f"?X-Amz-Credential={SECRET}&X-Amz-Signature={SECRET}&n=1"


def test_signed_files_are_read_and_called_by_their_plain_url(signed):
    copy = local_copy(f"{signed}/ok.txt{QUERY}")
    assert (copy.read_text(), copy.name, name_of(copy)) == ("rain\n", "ok.txt", f"{signed}/ok.txt")
    assert [line.text for path in find_files([f"{signed}/ok.txt{QUERY}"]) for line in read_lines(path)] == ["rain"]
    assert HashedFile.of(location(f"{signed}/ok.txt{QUERY}")).name == "ok.txt"


def test_a_new_signature_is_no_other_recipe():
    old, new = ({"model": {"weights": f"https://h/a?sig={name}"}} for name in (SECRET, "new"))
    assert differences(old, new) == []
    assert plain_urls(old) == {"model": {"weights": "https://h/a"}}
    (text,) = differences(old, {"model": {"weights": "https://h/b"}})
    assert SECRET not in text


@pytest.fixture
def google_bucket(monkeypatch):
    """The URL of a bucket of an emulator of Google Cloud Storage."""
    from gcp_storage_emulator.server import create_server

    with create_server("127.0.0.1", 0, in_memory=True, default_bucket="corpus") as emulator:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{emulator._api._httpd.server_port}")
        fsspec.filesystem("gs").clear_instance_cache()
        yield "gs://corpus"
    fsspec.filesystem("gs").clear_instance_cache()


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")  # by gcsfs
def test_buckets_of_google(google_bucket, tmp_path):
    put(f"{google_bucket}/texts/a.txt", NOVEL.read_text(encoding="utf-8")[:20_000])
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/a.txt").write_bytes(location(f"{google_bucket}/texts/a.txt").read_bytes())
    written = []
    for root in (tmp_path, google_bucket):
        options = ["--split-sentences", "--max-seq-length", "64", "--dupe-factor", "2", "--num-shards", "2"]
        output_of("prepare", f"{root}/texts", "--output", f"{root}/examples", *options)
        folder = local_copy(f"{root}/examples")
        written.append({file.relative_to(folder): file.read_bytes() for file in folder.rglob("*.*")})
    assert written[0] == written[1]
    with mirrored(f"{google_bucket}/run") as folder:
        (folder / "recipe.json").write_text("{}")
    assert sorted(file_infos(location(f"{google_bucket}/run"))) == ["recipe.json"]
    with pytest.raises(ValueError, match="there is no gs://none; create it"):
        location("gs://none/a")


def test_local_paths_need_no_library(run_python, tmp_path):
    program = f"""
import sys
sys.modules["fsspec"] = sys.modules["upath"] = None  # cannot be imported
from tests.cli.terminal import mistake
from tests.small_pipeline import make_small_pipeline
from albert_tf.files.installation import install_command
import pathlib
make_small_pipeline(pathlib.Path({str(tmp_path)!r}))
assert install_command("cloud") in mistake("prepare", "s3://a/b", "--output", "x")
assert not {{"s3fs", "gcsfs", "aiobotocore"}} & sys.modules.keys()
"""
    run_python("-c", program)
