"""`prepare` from text to a finished folder: same bytes however it runs, nothing half done, clear refusals."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.data import Manifest, Objective, prepare
from albert_tf.data.features import PRETRAINING_FEATURES
from albert_tf.data.preparation.pipeline import default_num_shards
from albert_tf.data.reader import parse_spec
from albert_tf.tokenization import AlbertTokenizer
from tests.data.small_corpus import LINES, options_for
from tests.disk import contents
from tests.parameters import first_of

ROOT = Path(__file__).parents[3]


def parsed(folder):
    """All examples of a folder as the reference's names to arrays [X, ...]."""
    paths = sorted(str(path) for path in folder.glob("*.tfrecord"))
    spec = parse_spec(PRETRAINING_FEATURES, Manifest.load(folder).recipe.examples.sizes)
    (batch,) = tf.data.TFRecordDataset(paths).batch(10**6).map(lambda records: tf.io.parse_example(records, spec))
    return {name: tensor.numpy() for name, tensor in batch.items()}


def test_manifest_tells_what_the_shards_hold(prepared, corpus):
    manifest, arrays = prepared.manifest, parsed(prepared.folder)
    lengths = arrays["input_mask"].sum(axis=1)
    shards = {shard.name: shard.bytes for shard in manifest.shards}
    assert {name: len(data) for name, data in contents(prepared.folder).items() if name.endswith("rd")} == shards
    others = set(contents(prepared.folder)) - shards.keys()
    assert others == {"manifest.json", *(f"tokenizer/{file.name}" for file in manifest.tokenizer)}
    assert manifest.documents == 60
    assert manifest.segments >= 1200  # the longest sentences are cut
    assert manifest.tokens == sum(len(ids) for ids in AlbertTokenizer.english().encode_batch(LINES))
    assert manifest.statistics.examples == len(lengths)
    assert manifest.statistics.tokens == lengths.sum()
    assert manifest.statistics.masked == arrays["masked_lm_weights"].sum()
    assert manifest.statistics.label_1_share == pytest.approx(arrays["next_sentence_labels"].mean())
    assert manifest.recipe.vocab_hash == AlbertTokenizer.english().vocab_hash
    assert [file.name for file in manifest.recipe.corpus] == ["a.txt", "b.txt"]
    assert manifest.recipe.corpus[0].bytes == (corpus / "a.txt").stat().st_size
    assert Manifest.load(prepared.folder) == manifest


def test_tokens_come_from_the_text(prepared):
    """Unmasked, unswapped, every example is a passage of the corpus."""
    arrays = parsed(prepared.folder)
    ids = arrays["input_ids"].copy()
    rows, slots = np.nonzero(arrays["masked_lm_weights"])
    ids[rows, arrays["masked_lm_positions"][rows, slots]] = arrays["masked_lm_ids"][rows, slots]
    tokenizer = AlbertTokenizer.english()
    corpus_ids = "," + ",".join(str(token) for line in tokenizer.encode_batch(LINES) for token in line) + ","
    for row in range(0, len(ids), 7):
        length = arrays["input_mask"][row].sum()
        second = int(np.argmax(arrays["segment_ids"][row]))
        segments = [ids[row, 1 : second - 1], ids[row, second : length - 1]]
        assert all("," + ",".join(map(str, segment)) + "," in corpus_ids for segment in segments)


def test_any_number_of_processes_writes_the_same_bytes(prepared, corpus, tmp_path):
    stages = []
    report = prepare(options_for(corpus, tmp_path / "two", num_processes=2), stages.append)
    assert contents(report.folder) == contents(prepared.folder)
    assert {progress.stage for progress in stages} == {"tokenize", "write"}
    for stage in ("tokenize", "write"):
        done = [progress.done for progress in stages if progress.stage == stage]
        assert done == sorted(done)
        last = [progress for progress in stages if progress.stage == stage][-1]
        assert last.done == last.total


def test_another_seed_gives_other_examples(prepared, corpus, tmp_path):
    other = prepare(options_for(corpus, tmp_path / "other", seed=1)).folder
    before, after = contents(prepared.folder), contents(other)
    assert before.keys() == after.keys()
    assert all((before[name] == after[name]) == name.startswith("tokenizer/") for name in before)


def test_an_added_file_changes_only_the_shards_of_its_documents(prepared, corpus, tmp_path):
    (tmp_path / "c.txt").write_text("One more document.\nWith two sentences.\n")
    options = options_for(corpus, tmp_path / "more")
    more = prepare(options.model_copy(update={"inputs": (corpus, tmp_path)})).folder
    before, after = contents(prepared.folder), contents(more)
    assert sum(before[name] != after[name] for name in before if name != "manifest.json") == 1


@pytest.mark.parametrize(
    ("text", "changes", "message"),
    [
        (b"\n \n", {}, "No text was found in .*; give other files"),
        (b"A single line.\n", {}, r"No document has two sentences to make a pair of \(documents: 1, sentences: 1\)"),
        (b"A.\n\nB.\n", {"objective": Objective.NEXT_SENTENCE, "num_shards": 1}, "No document has two sentences"),
        (b"ok\n\xff\n", {}, r"text\.txt is not UTF-8: byte 0xff at byte offset 3"),
        (b"A.\nB.\n", {"objective": Objective.NEXT_SENTENCE}, r"a shard has a single document \(documents in all: 1\)"),
    ],
)
def test_bad_corpora_are_refused_and_leave_no_folder(tmp_path, text, changes, message):
    (tmp_path / "text.txt").write_bytes(text)
    with pytest.raises(ValueError, match=message):
        prepare(options_for(tmp_path, tmp_path / "examples", **changes))
    assert not (tmp_path / "examples").exists()


def test_odd_texts_do_not_crash(tmp_path):
    (tmp_path / "text.txt").write_bytes("\ufeffNUL \0 here.\nNext.\n".encode() + b"long " * 200_000 + b"\nEnd.\n")
    with pytest.warns(UserWarning, match=r"text\.txt has a line of 999,999 characters \('long .*--split-sentences"):
        report = prepare(options_for(tmp_path, tmp_path / "examples", dupe_factor=1, num_shards=8, document_gap=0))
    # The megabyte line is used, not one example's worth of it; pairs are cut to fit.
    assert report.manifest.statistics.tokens > 0.85 * report.manifest.tokens
    # One document, so seven shards have no file.
    assert len(list(report.folder.glob("*.tfrecord"))) == len(report.manifest.shards) == 1


def test_single_sentences_are_enough_without_pairs(tmp_path):
    (tmp_path / "text.txt").write_text("A single line of text.\n")
    report = prepare(options_for(tmp_path, tmp_path / "examples", objective=Objective.NONE))
    assert report.manifest.statistics.examples == 2
    assert report.manifest.statistics.label_1 == 0


@pytest.mark.parametrize("form", ["examples", "documents"])
def test_repeated_documents_are_counted_and_left_out(tmp_path, form):
    documents = ["\n".join(LINES[start : start + 5]) for start in range(0, 40, 5)]
    for name, repeated in (("once", []), ("twice", documents[2:5])):
        (tmp_path / f"{name}.txt").write_text(
            "\n\n".join([*documents[:6], *repeated, *documents[6:]]), encoding="utf-8"
        )
    once = prepare(options_for(tmp_path / "once.txt", tmp_path / "once", format=form))
    twice = prepare(options_for(tmp_path / "twice.txt", tmp_path / "twice", format=form))
    left_out = prepare(options_for(tmp_path / "twice.txt", tmp_path / "left out", format=form, drop_repeated=True))
    counts = [(one.manifest.documents, one.manifest.repeated_documents) for one in (once, twice, left_out)]
    assert counts == [(8, 0), (11, 3), (8, 3)]
    expected, shards = contents(once.folder), contents(left_out.folder)
    assert all(shards[name] == content for name, content in expected.items() if name.endswith(".tfrecord"))


KILLED = """
import sys
from albert_tf.data import PrepareOptions, prepare

def progress(progress):
    print(progress.stage, flush=True)
    sys.stdin.readline()

if __name__ == "__main__":
    prepare(PrepareOptions.model_validate_json(sys.argv[1]), progress)
"""


@pytest.mark.parametrize(("steps", "shards"), first_of([(2, 0), (6, 2)]))
def test_a_killed_run_leaves_no_half_shard_and_is_taken_up(corpus, tmp_path, steps, shards):
    """The run halts at every report of progress: three while it tokenises, one before it writes, one for each shard."""
    options = options_for(corpus, tmp_path / "killed", dupe_factor=30, num_shards=4)
    command = [sys.executable, "-c", KILLED, options.model_dump_json()]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for step in range(steps):
            assert process.stdout.readline()
            if step < steps - 1:
                process.stdin.write("\n")
                process.stdin.flush()
        process.kill()
    finished = {path.name: path.stat().st_mtime_ns for path in options.output_dir.glob("*.tfrecord")}
    assert len(finished) == shards
    report = prepare(options)
    assert not report.reused
    assert all((report.folder / name).stat().st_mtime_ns == written for name, written in finished.items())
    uninterrupted = prepare(options_for(corpus, tmp_path / "other", dupe_factor=30, num_shards=4))
    assert contents(report.folder) == contents(uninterrupted.folder)


def test_a_second_run_at_the_same_time_is_refused_and_disturbs_nothing(prepared, corpus, tmp_path):
    """Another process halts in the middle of its work, while runs of the same recipe and of another one come."""
    options = options_for(corpus, tmp_path / "examples")
    command = [sys.executable, "-c", KILLED, options.model_dump_json()]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline()
        for second in (options, options_for(corpus, tmp_path / "examples", seed=1)):
            with pytest.raises(ValueError, match="is being written by another process"):
                prepare(second)
        process.communicate("\n" * 100)
    assert process.returncode == 0
    assert contents(tmp_path / "examples") == contents(prepared.folder)


def test_shards_do_not_outgrow_memory(tmp_path):
    """A hundred gigabytes, of which the file system stores none."""
    plain, packed = tmp_path / "a.txt", tmp_path / "b.txt.gz"
    for path in (plain, packed):
        path.touch()
        os.truncate(path, 2**20)
    assert default_num_shards([plain, packed]) == 8
    os.truncate(plain, 60 * 10**9)
    os.truncate(packed, 10 * 10**9)
    assert default_num_shards([plain, packed]) == 373


def test_a_vocabulary_among_the_texts_is_no_text(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nit\nrained\nstopped\n.")
    (tmp_path / "a.txt").write_text("It rained.\nIt stopped.\n" * 4)
    first, second = (prepare(options_for(tmp_path, tmp_path / "out", tokenizer=tmp_path / "vocab.txt")) for _ in "12")
    assert [file.name for file in first.manifest.recipe.corpus] == ["a.txt"]
    assert (tmp_path / "out" / "tokenizer" / "vocab.txt").is_file()
    assert second.reused


# === Warnings of texts from which a model would learn little ===


def test_texts_that_the_vocabulary_hardly_knows_are_warned_of(tmp_path):
    (tmp_path / "ko.txt").write_text("오늘은 비가 왔다.\n우산이 없었다.\n", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"\d\d% of the tokens are unknown.*; give"):
        manifest = prepare(options_for(tmp_path / "ko.txt", tmp_path / "examples")).manifest
    tokenizer = AlbertTokenizer.english()
    ids = [token for line in (tmp_path / "ko.txt").read_text("utf-8").splitlines() for token in tokenizer.encode(line)]
    assert manifest.unknown_tokens == ids.count(tokenizer.unk_token_id) > 0.05 * manifest.tokens == 0.05 * len(ids)


def test_documents_of_one_sentence_are_warned_of(tmp_path):
    """They make no example, which would lose most of a text with a blank line after each sentence in silence."""
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join([*LINES[:3], "\n".join(LINES[3:5])]))
    with pytest.warns(UserWarning, match=r"^3 of 4 documents have a single sentence, .*\(--split-sentences\)"):
        prepare(options_for(text, tmp_path / "examples"))
    prepare(options_for(text, tmp_path / "none", objective="none"))


def test_unrelated_lines_without_blank_ones_between_them_are_warned_of(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("It rained.\nIt stopped.\n" * 500)
    with pytest.warns(UserWarning, match=r"^All 1,000 sentences are a single document, .*\(--objective none\).*gap 0"):
        prepare(options_for(text, tmp_path / "examples", dupe_factor=1))
    for name, changes in (("none", {"objective": "none"}), ("gap", {"document_gap": 0})):
        prepare(options_for(text, tmp_path / name, dupe_factor=1, **changes))
