"""Proves what a folder of weights has to have, and that it answers as the model did that was saved there."""

import pytest

import albert_tf
from tests.toy_task import write_classifier

FILES = ("config.json", "model.safetensors", "modules.json", "model.json")
FILES += ("spiece.model", "tokenizer_config.json", "added_tokens.json")


def test_a_link_without_its_file_does_not_count_as_absent(tmp_path):
    """As in a copy of Hugging Face's cache without its blobs."""
    folder = write_classifier(tmp_path / "model")
    for name in FILES:
        file, content = folder / name, (folder / name).read_bytes() if (folder / name).exists() else None
        file.unlink(missing_ok=True)
        file.symlink_to("../../blobs/0123")
        with pytest.raises(ValueError, match=rf"{name} is not a file"):
            albert_tf.pipeline(folder)
        file.unlink()
        if content is not None:
            file.write_bytes(content)
