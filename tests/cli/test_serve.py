"""Proves that `serve` says in one sentence what it cannot serve, and reads its key."""

import pytest

from albert_tf.cli.serve import KEY_VARIABLE, _api_key

from .terminal import mistake

FILES = ("empty", "other/notes", "weights/config.json", "weights/model.safetensors", "phones/1/model.tflite")
FILES += ("hub/encoder/saved_model.pb", "hub/preprocess/saved_model.pb")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["none"], "none is not a folder"),
        (["."], "No model in . can be served: ./weights holds weights; export it first: albert-tf export ./weights"),
        (["other"], "No model in other can be served: it has no complete version of a model: saved_model.pb"),
        (["weights"], "it holds weights; export it first: albert-tf export weights --name weights."),
        (["none_yet"], "none_yet can be served: it is empty; export a model into it with `albert-tf export`."),
        (["phones"], "is a LiteRT export, which LiteRT runs; saved_models/README.md shows how."),
        (["hub"], "does not take texts, like all modules for TF Hub; export it with --format saved_model."),
        ([".", "--api-key-file", "empty"], "empty must have one line of ASCII letters, digits and signs"),
        ([".", "--api-key-file", "accents"], "accents must have one line of ASCII letters, digits and signs"),
        ([".", "--api-key-file", "utf-16-be"], "utf-16-be must have one line of ASCII letters, digits and signs"),
        ([".", "--allowed-host", "models.example:80"], "must be a name without scheme and port"),
        ([".", "--api-key-file", "lines"], "lines must have one line of ASCII letters, digits and signs"),
    ],
)
def test_what_cannot_be_served_is_one_sentence(tmp_path, monkeypatch, arguments, complaint):
    monkeypatch.chdir(tmp_path)
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    (tmp_path / "none_yet").mkdir()
    (tmp_path / "accents").write_text("cl\u00e9", "utf-8")
    (tmp_path / "lines").write_text("one\ntwo\n")
    (tmp_path / "utf-16-be").write_bytes("key".encode("utf-16-be"))
    assert complaint in mistake("serve", *arguments)


def test_the_key_is_that_of_the_file_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert _api_key(None) is None
    monkeypatch.setenv(KEY_VARIABLE, "of the environment\n")
    assert _api_key(None) == "of the environment"
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):  # as editors and shells of Windows write it
        (tmp_path / "key").write_text("of the file\r\n", encoding)
        assert _api_key(tmp_path / "key") == "of the file"
