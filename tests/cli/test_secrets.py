"""Proves that the passwords and signatures of URLs are in no message, log or file."""

import http.server
import logging
import pathlib
import threading
import traceback
import warnings

import pytest

from albert_tf.cli import serve
from albert_tf.files.hub import model_folder
from albert_tf.files.urls import local_copy, location, make_folder, without_secrets
from albert_tf.trainer import FinetuneOptions, finetune, load_examples
from tests.cli.terminal import mistake
from tests.toy_task import write_pretrained

SECRETS = ("PASSW0RD", "SIGN4TURE", "CREDENT1AL")
QUERY = "?X-Amz-Signature=SIGN4TURE&X-Amz-Credential=CREDENT1AL"


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def send_head(self):  # of GET and of HEAD
        return self.send_error(403) if "refused" in self.path else super().send_head()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("secrets")
    write_pretrained(folder / "pretrained")
    (folder / "train.tsv").write_text("text\tlabel\nfine\tgood\ndull\tbad\nwell\tgood\n")
    (folder / "other.tsv").write_text("text\tlabe\nfine\tgood\n")
    return folder


@pytest.fixture(scope="module")
def site(files):
    """The URL of a server of these files, with a password."""

    def handler(*arguments):
        return _Handler(*arguments, directory=str(files))

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://me:PASSW0RD@127.0.0.1:{server.server_port}"
        server.shutdown()


def assert_clean(text):
    assert [secret for secret in SECRETS if secret in text] == []


def test_a_message_of_each_kind():
    for text, expected in {
        "https://a/b.csv?sig=x%2By; check the URL": "https://a/b.csv; check the URL",
        "url='https://a/b.csv?token=x'; status 403": "url='https://a/b.csv'; status 403",
        "403: X-Amz-Signature=1f Authorization: Bearer 1f": "403: X-Amz-Signature ... Authorization: Bearer ...",
        "sftp://me:pw@host/a (no)": "sftp://host/a (no)",
        "https:/token@host/a": "https:/host/a",
        "https://me:p/w@host/a@b": "https://host/a@b",
        "https://host:80/a@b and [::1]:80/a@b": "https://host:80/a@b and [::1]:80/a@b",
        "s3://bucket/a?&sig=x": "s3://bucket/a",
        "s3://bucket/a@b and me@host.org": "s3://bucket/a@b and me@host.org",
        "https:/u:p@h/a?sig=1": "https:/h/a",
        "az://c/a?sig=1.": "az://c/a.",
        "url: /a/b?token=1&x=2 (no)": "url: /a/b (no)",
        **{
            text: text for text in ("s3://b/part-?.txt", "hf://a/b@main", "a=b? c=d", "See docs/a?", "see https://h/a.")
        },
    }.items():
        assert without_secrets(text) == expected


@pytest.mark.parametrize("name", ["none.tsv", "refused.tsv", "other.tsv"])
def test_commands(name, files, site):
    url = f"{site}/{name}{QUERY}"
    pretrained, table = files / "pretrained", files / "train.tsv"
    commands = [
        ("finetune", pretrained, "--train", url, "--dev", table, "--output", files / "none"),
        ("finetune", pretrained, "--train", table, "--dev", table, "--output", url),
        *((("predict", url, "a text"), ("serve", url), ("info", url)) if name == "none.tsv" else ()),
    ]
    if name != "other.tsv":  # which is a text
        commands.append(("prepare", url, "--output", files / "none", "--tokenizer", pretrained))
    for command in commands:
        message = mistake(*command)
        assert_clean(message)
        assert f"/{name}" in message


def test_python(files, site):
    for name, reason in {"none.tsv": "exist", "refused.tsv": "exist|Forbidden", "other.tsv": "no column"}.items():
        url = f"{site}/{name}{QUERY}"
        for call in (load_examples, *((model_folder, local_copy) if name != "other.tsv" else ())):
            with pytest.raises(ValueError, match=reason) as raised:
                call(url)
            assert_clean("".join(traceback.format_exception(raised.value)))
    with pytest.raises(ValueError, match="/x can only be read") as raised:
        make_folder(location(f"{site}/x{QUERY}"))
    assert_clean(str(raised.value))


@pytest.mark.exhaustive
def test_files_of_a_run_and_the_same_run_with_another_signature(files, site):
    def options(signature):
        url = f"{site}/train.tsv?X-Amz-Signature={signature}"
        pretrained, output = files / "pretrained", files / "run"
        return FinetuneOptions(pretrained=pretrained, train=url, dev=url, output=output, epochs=1, max_length=16)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = finetune(options("SIGN4TURE"))
    assert_clean("".join(str(warning.message) for warning in caught) + report.model_dump_json())
    written = [path for path in pathlib.Path(files / "run").rglob("*") if path.is_file()]
    assert len(written) > 5
    for path in written:
        assert_clean(path.read_bytes().decode("latin-1"))
    assert finetune(options("renewed")).finished_before


def test_logs_of_the_server(capsys):
    handler = serve._handler()
    handler.emit(logging.makeLogRecord({"msg": "Loading %s.", "args": (f"http://me:PASSW0RD@host/m{QUERY}",)}))
    printed = capsys.readouterr().err
    assert "Loading http://host/m." in printed
    assert_clean(printed)
