"""Proves that `albert-tf info` shows what a model costs, what a check of its files found, or what is wrong there."""

import json

from albert_tf.config import AlbertConfig
from tests.disk import change_json
from tests.toy_task import write_pretrained

from .terminal import mistake, output_of


def test_a_sound_folder_and_what_is_wrong_with_it(tmp_path):
    folder = write_pretrained(tmp_path)
    printed = output_of("info", folder, "--check")
    assert "<pad> 0, <unk> 1, [CLS] 2, [SEP] 3, [MASK] 4." in printed
    assert "capital letters" in printed
    change_json(folder / "tokenizer_config.json", do_lower_case=False)
    assert "The capital letters ABC" in mistake("info", folder, "--check")


def test_info_prints_published_counts():
    printed = output_of("info", "base_v2", "--sequence-length", 128)
    assert "11,683,584" in printed
    assert "11,813,810" in printed
    assert "109,081,344" in printed  # without sharing and factorisation: a BERT with 30,000 pieces


def test_info_takes_the_length_of_a_short_model(tmp_path):
    values = {**AlbertConfig.from_preset("tiny").to_dict(), "max_position_embeddings": 64}
    (tmp_path / "config.json").write_text(json.dumps(values))
    assert "64 tokens" in " ".join(output_of("info", tmp_path).split())  # the title has the path, of any length
    assert "max_position_embeddings" in mistake("info", tmp_path, "--sequence-length", 65)


def test_info_names_the_nearest_preset():
    assert "did you mean 'base_v2'" in mistake("info", "base_v22")
    assert "nowhere does not exist" in mistake("info", "nowhere", "--check")


def test_the_costs_of_a_model_fit_into_80_columns():
    printed = output_of("info", "base_v2", columns=80)
    assert all(f"{label} " in printed for label in ("parameters, encoder", "MFLOP/token forward", "MiB of activations"))
