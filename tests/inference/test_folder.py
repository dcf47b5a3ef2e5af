"""Proves what a folder of weights has to have, and that it answers as the model did that was saved there."""

import pytest

import albert_tf
from tests.toy_task import write_classifier


@pytest.mark.parametrize(
    "name",
    [
        *("config.json", "model.safetensors", "modules.json", "model.json"),
        *("spiece.model", "tokenizer_config.json", "added_tokens.json"),
    ],
)
def test_a_link_without_its_file_does_not_count_as_absent(name, tmp_path):
    """As in a copy of Hugging Face's cache without its blobs."""
    folder = write_classifier(tmp_path / "model")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to("../../blobs/0123")
    with pytest.raises(ValueError, match=rf"{name} is not a file"):
        albert_tf.pipeline(folder)
