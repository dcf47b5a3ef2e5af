"""A folder is written by one recipe alone: finished ones stay, other ones are refused, damaged ones are made again."""

import shutil

import pytest

from albert_tf.data import prepare
from albert_tf.data.manifest import save_record
from tests.data.small_corpus import options_for
from tests.disk import contents, flip_bit


def test_a_finished_folder_is_not_made_again(prepared, corpus):
    report = prepare(options_for(corpus, prepared.folder, num_processes=2))
    assert report.reused
    assert report.manifest == prepared.manifest


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"seed": 1, "ngram": 1}, "ngram is 1, was 3; seed is 1, was 12345"),
        ({"do_lower_case": False}, r"settings: another vocabulary, or other options of its tokenizer\. Give"),
        ({}, "settings: other texts"),
    ],
)
def test_a_folder_of_another_recipe_is_refused(prepared, corpus, tmp_path, changes, difference):
    (tmp_path / "a.txt").write_text((corpus / "a.txt").read_text() + "\nMore.\n")
    before = contents(prepared.folder)
    with pytest.raises(ValueError, match=difference):
        prepare(options_for(corpus if changes else tmp_path, prepared.folder, **changes))
    assert contents(prepared.folder) == before


def test_a_folder_with_other_things_is_refused(corpus, tmp_path):
    (tmp_path / "thesis.doc").write_text("keep me")
    with pytest.raises(ValueError, match="is not empty and not made by `prepare`"):
        prepare(options_for(corpus, tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.doc"]
    with pytest.raises(ValueError, match=r"thesis\.doc is a file"):
        prepare(options_for(corpus, tmp_path / "thesis.doc"))


def test_what_a_run_killed_at_its_very_end_left_is_removed(prepared, corpus, tmp_path):
    copy = shutil.copytree(prepared.folder, tmp_path / "copy")
    (copy / ".prepare/tokenized").mkdir(parents=True)
    assert prepare(options_for(corpus, copy)).reused
    assert contents(copy) == contents(prepared.folder)


def test_an_unfinished_folder_of_another_recipe_is_refused_only_if_it_holds_shards(corpus, tmp_path):
    options = options_for(corpus, tmp_path / "examples")
    (options.output_dir / ".prepare").mkdir(parents=True)
    manifest = prepare(options_for(corpus, tmp_path / "other", seed=4)).manifest
    save_record(options.output_dir / ".prepare" / "recipe.json", manifest.recipe)
    shard = options.output_dir / manifest.shards[0].name
    shard.write_bytes(b"")
    with pytest.raises(ValueError, match="seed is 12345, was 4"):
        prepare(options)
    shard.unlink()
    assert prepare(options).manifest.recipe.examples.seed == 12345


@pytest.mark.parametrize("name", ["recipe", "shard-0"])
def test_a_damaged_file_of_an_unfinished_run_is_named(corpus, tmp_path, name):
    options, workspace = options_for(corpus, tmp_path / "examples"), tmp_path / "examples" / ".prepare"

    def stop(progress):
        if progress.stage == "write" and progress.done == progress.total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(options, stop)
    content = (workspace / f"{name}.json").read_text()
    (workspace / f"{name}.json").write_text(content.replace("0", "1", 1))
    with pytest.raises(ValueError, match=rf"{name}\.json .* delete .*examples and prepare it again"):
        prepare(options)


@pytest.mark.parametrize(
    ("name", "damage"), [("pretraining-00000-of-00003.tfrecord", "lost"), ("tokenizer/spiece.model", "changed")]
)
def test_a_folder_that_lost_a_file_is_made_again(prepared, corpus, tmp_path, name, damage):
    folder = tmp_path / "examples"
    shutil.copytree(prepared.folder, folder)
    if damage == "lost":
        (folder / name).unlink()
    else:
        flip_bit(folder / name, -1)
    assert not prepare(options_for(corpus, folder)).reused
    assert contents(folder) == contents(prepared.folder)
