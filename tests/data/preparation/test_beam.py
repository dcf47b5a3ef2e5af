"""Apache Beam writes the bytes of the local runner, and what goes wrong inside it comes out as one sentence."""

import re
import sys

import pytest

from albert_tf.data import prepare
from albert_tf.files.installation import install_command
from tests.data.small_corpus import LINES, options_for
from tests.disk import contents


@pytest.fixture
def corpus(tmp_path):
    """Three files of documents, the same one twice among them, so that their order in the corpus matters."""
    documents = ["\n".join(LINES[start : start + 20]) for start in range(0, 600, 20)]
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name, part in (("b", documents[:14]), ("a", documents[14:]), ("c", documents[:1])):
        (folder / f"{name}.txt").write_text("\n\n".join(part))
    return folder


@pytest.mark.exhaustive
# Random partners depend on the other documents of a shard and on their order.
@pytest.mark.parametrize(
    "changes", [{"objective": "next_sentence", "num_shards": 2}, {"format": "documents", "num_shards": 40}]
)
def test_beam_writes_the_same_bytes(corpus, tmp_path, monkeypatch, changes):
    monkeypatch.setattr("albert_tf.data.preparation.tokenized_cache._BATCH_CHARACTERS", 4000)
    local = prepare(options_for(corpus, tmp_path / "local", **changes))
    beam = prepare(options_for(corpus, tmp_path / "beam", runner="beam", **changes))
    assert contents(beam.folder) == contents(local.folder)
    assert beam.manifest == local.manifest


@pytest.mark.exhaustive
def test_beam_takes_up_what_the_local_runner_began(corpus, tmp_path):
    options = options_for(corpus, tmp_path / "begun", num_shards=3)

    def stop(progress):
        if len(list(options.output_dir.glob("*.tfrecord"))) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(options, stop)
    (finished,) = options.output_dir.glob("*.tfrecord")
    written = finished.stat().st_mtime_ns
    prepare(options.model_copy(update={"runner": "beam"}))
    assert finished.stat().st_mtime_ns == written
    other = prepare(options_for(corpus, tmp_path / "other", num_shards=3))
    assert contents(options.output_dir) == contents(other.folder)


@pytest.mark.parametrize(
    ("text", "beam_options", "kind", "message"),
    [
        (b"ok\n\xff\n", (), RuntimeError, r"failed: .*text\.txt is not UTF-8: byte 0xff at byte offset 3"),
        pytest.param(b"\n", (), ValueError, "No text was found in .*; give other files", marks=pytest.mark.exhaustive),
        pytest.param(b"A.\n", ("--runner=NoSuch",), RuntimeError, "failed: .*NoSuch", marks=pytest.mark.exhaustive),
    ],
)
def test_mistakes_are_told(tmp_path, text, beam_options, kind, message):
    (tmp_path / "text.txt").write_bytes(text)
    with pytest.raises(kind, match=message):
        prepare(options_for(tmp_path, tmp_path / "examples", runner="beam", beam_options=beam_options))


def test_without_beam_one_sentence_says_what_to_install(corpus, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(ValueError, match=re.escape(install_command("beam"))):
        prepare(options_for(corpus, tmp_path / "examples", runner="beam"))
