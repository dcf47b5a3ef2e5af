"""Proves which folders are served, and that versions are swapped without losing a request."""

import asyncio
import logging
import os
import pathlib
import shutil
import tempfile
import weakref

import pytest

from albert_tf.serving.errors import NotFoundError
from albert_tf.serving.versions import ModelRoot
from tests.serving.toy_server import ToyEngine, run, toy_server, write_version


def found(root):
    return {name: [version.number for version in versions] for name, versions in ModelRoot(root).scan().items()}


def test_a_root_a_model_or_a_version_is_served(tmp_path):
    for number in (1, 2, 10):
        write_version(tmp_path / "task", number)
    write_version(tmp_path / "other", 1)
    assert found(tmp_path) == {"task": [10, 2, 1], "other": [1]}
    assert found(tmp_path / "task") == {"task": [10, 2, 1]}
    assert found(tmp_path / "task" / "2") == {"task": [2]}
    assert found((tmp_path / "task" / "2").rename(tmp_path / "export")) == {"export": [1]}
    with pytest.raises(ValueError, match="is not a folder"):
        ModelRoot(tmp_path / "none")


def test_a_model_may_be_named_by_a_number(tmp_path):
    write_version(tmp_path / "task", 1)
    write_version(tmp_path / "2024", 3)
    assert found(tmp_path) == {"task": [1], "2024": [3]}


def test_version_numbers_are_read_as_tensorflow_serving_does(tmp_path, caplog):
    for number in ("0", "007", "7", "10"):
        write_version(tmp_path / "task", number)
    write_version(tmp_path / "one" / "again", "01")
    for name in ("best", "-3", "9" * 19):
        write_version(tmp_path / "task", name)
    write_version(tmp_path, "flat")
    folders = [version.folder.name for version in ModelRoot(tmp_path).scan()["task"]]
    assert folders == ["10", "7", "007", "0"]
    assert found(tmp_path / "one") == {"again": [1]}
    unnumbered = (tmp_path / name for name in ("task/best", "task/-3", f"task/{'9' * 19}", "flat"))
    *unnumbered, one = (*unnumbered, tmp_path / "one")
    reason = "the folder of a version must be named by its number, such as 1."
    assert {f"{path} is not served: {reason}" for path in unnumbered} < set(caplog.messages)
    assert {message.split(" is ")[0] for message in caplog.messages} == set(map(str, (*unnumbered, one)))


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can become someone else")
def test_a_folder_that_cannot_be_read_is_ignored(caplog):
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        write_version(pathlib.Path(root) / "task", 1)
        (pathlib.Path(root) / "lost+found").mkdir(0o700)
        (pathlib.Path(root) / "task" / "1" / "secret").mkdir(0o700)
        os.seteuid(65534)
        try:
            assert found(root) == {"task": [1]}
        finally:
            os.seteuid(0)
        assert caplog.messages == [f"{root}/lost+found is not served: the server may not read it."]


def test_what_is_incomplete_or_has_a_bad_name_is_logged_once(tmp_path, caplog):
    write_version(tmp_path / "task", 1)
    write_version(tmp_path / "bad name", 1)
    (tmp_path / "task" / "2" / "variables").mkdir(parents=True)  # no saved_model.pb yet
    (tmp_path / "task" / "3").mkdir()
    (tmp_path / "task" / "3" / "saved_model.pb").touch()  # no variables yet
    (tmp_path / "task" / "notes").mkdir()
    (tmp_path / "README.md").touch()
    for file in ("weights/config.json", "weights/model.safetensors", "phones/1/model.tflite", "data/train.tsv"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "config.json").symlink_to("gone")
    root = ModelRoot(tmp_path)
    for _ in range(2):
        assert {name: [version.number for version in versions] for name, versions in root.scan().items()} == {
            "task": [1]
        }
    assert sorted(message.split(" is ")[0].rpartition("/")[2] for message in caplog.messages) == [
        *("2", "3", "bad name", "data", "links", "phones", "weights")
    ]
    weights = tmp_path / "weights"
    cure = f"it holds weights; export it first: albert-tf export {weights} --name weights."
    assert f"{weights} is not served: {cure}" in caplog.messages


def test_a_new_version_replaces_the_old_one_and_no_request_is_lost(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    write_version(tmp_path / "task", 1)

    async def scenario():
        async with toy_server(tmp_path, ToyEngine(seconds=0.05), timeout=1, read_timeout=0.5) as server:
            old = server.models.find("task")
            asking = [
                asyncio.create_task(server.client.post("/v1/models/task:predict", json={"instances": ["a", "b"]}))
                for _ in range(20)
            ]
            await asyncio.sleep(0.02)
            write_version(tmp_path / "task", 2)
            await server.models.refresh()
            assert server.models.find("task").version.number == 2
            assert {reply.status_code for reply in await asyncio.gather(*asking)} == {200}
            assert (await old.batcher.run("labels", {}))["labels"].tolist()  # also those that have just found it
            engine = weakref.ref(old.engine)
            del old
            async with asyncio.timeout(30):
                while engine() is not None:
                    await asyncio.sleep(0.1)
            with pytest.raises(NotFoundError, match=r"version 1 of task; version 2 is served"):
                server.models.find("task", "1")

    run(scenario)
    assert "task 2 is served by toy." in caplog.messages


def test_a_version_that_is_copied_slowly_is_served_once_it_is_complete(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    write_version(tmp_path / "task", 1)

    def load(folder):
        if folder.name != "1" and len((folder / "onnx" / "model.onnx").read_text()) < 6:
            raise ValueError("model.onnx is cut off")
        return ToyEngine()

    async def scenario():
        async with toy_server(tmp_path) as server:
            server.models._load = load
            folder = tmp_path / "task" / "2"
            (folder / "onnx").mkdir(parents=True)
            (folder / "onnx" / "model.onnx").touch()
            (folder / "model.json").write_text("{}")
            await server.models.refresh()
            for weights in ("w", "wei", "weights"):
                (folder / "onnx" / "model.onnx").write_text(weights)
                await server.models.refresh()
                assert server.models.find("task").version.number == 1
            await server.models.refresh()
            served = server.models.find("task")
            assert served.version.number == 2
            await server.models.refresh()
            assert server.models.find("task") is served
            (folder / "onnx" / "model.onnx").write_text("others")
            await server.models.refresh()
            assert server.models.find("task") is served  # not version 1
            await server.models.refresh()
            assert server.models.find("task").version == server.models._root.scan()["task"][0] != served.version

    run(scenario)
    failed, *loaded = [message for message in caplog.messages if "ersion" in message or "2 is" in message]
    assert failed == "Version 2 of task could not be loaded; version 1 stays: model.onnx is cut off"
    assert loaded == ["task 2 is served by toy."] * 2


def test_a_version_that_does_not_load_leaves_the_old_one(tmp_path, caplog):
    write_version(tmp_path / "task", 1)

    def load(folder):
        if folder.name != "1" and (folder / "model.json").read_text() == "{}":
            raise ValueError("damaged")
        return ToyEngine()

    async def scenario():
        async with toy_server(tmp_path) as server:
            server.models._load = load
            write_version(tmp_path / "task", 2)
            for _ in range(2):
                await server.models.refresh()
            assert server.models.find("task").version.number == 1
            shutil.rmtree(tmp_path / "task" / "2")
            write_version(tmp_path / "task", 2, '{"repaired": true}')
            for _ in range(2):
                await server.models.refresh()
            assert server.models.find("task").version.number == 2
            shutil.rmtree(tmp_path / "task" / "2")  # a step back
            await server.models.refresh()
            assert server.models.find("task").version.number == 1
            shutil.rmtree(tmp_path / "task")
            await server.models.refresh()
            assert server.models.find("task").version.number == 1

    run(scenario)
    assert [message for message in caplog.messages if "could not be loaded" in message] == [
        "Version 2 of task could not be loaded; version 1 stays: damaged"
    ]
