"""Proves that versions of exports count up, stay inside their folder, and are never replaced."""

import pytest

from albert_tf.export.versions import check_name, publish, version_folder


def test_versions_count_up_and_none_is_taken_twice(tmp_path):
    assert version_folder(tmp_path, "m", None, "ONNX") == tmp_path / "m" / "1"
    (tmp_path / "m" / "7").mkdir(parents=True)
    assert version_folder(tmp_path, "m", None, "ONNX") == tmp_path / "m" / "8"
    assert version_folder(tmp_path, "m", 3, "ONNX") == tmp_path / "m" / "3"
    for version in (0, 7):
        with pytest.raises(ValueError, match=rf"must be at least 1 and not exist yet.*version={version}; .*m has 7"):
            version_folder(tmp_path, "m", version, "ONNX")


def test_a_version_of_another_format_is_said(tmp_path):
    (tmp_path / "mood" / "3").mkdir(parents=True)
    (tmp_path / "mood" / "3" / "model.tflite").touch()
    with pytest.warns(UserWarning, match=r"Version 3 in \S+mood is of another format, LiteRT, and programs take"):
        assert version_folder(tmp_path, "mood", None, "ONNX").name == "4"
    assert version_folder(tmp_path, "mood", None, "LiteRT").name == "4"  # another warning would be an error


@pytest.mark.parametrize("name", ["", "a/b", "../up", ".hidden"])
def test_names_stay_inside_the_output(name):
    with pytest.raises(ValueError, match="must be a folder name"):
        check_name(name)


def test_a_version_that_another_process_wrote_meanwhile_stays(tmp_path):
    (tmp_path / "partial").mkdir()
    (tmp_path / "m" / "1" / "variables").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"m/1 was written by another process meanwhile; export again"):
        publish(tmp_path / "partial", tmp_path / "m" / "1")
    assert [path.name for path in (tmp_path / "m" / "1").iterdir()] == ["variables"]
