"""Proves that damage to a file is one sentence at most and costs bounded memory; `make fuzz` does so 10,000 times."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from albert_tf import checkpoints

from .targets import TARGETS, copy_of, damaged, read_damaged, sound

few = settings(max_examples=8, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
EDITS = st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4), st.integers(0, 4)), min_size=1, max_size=4)


@pytest.fixture(scope="module", params=TARGETS)
def target(request, tmp_path_factory):
    """A name, and its folder, which has been read once as it is."""
    folder = copy_of(request.param, tmp_path_factory.mktemp("fuzz"))
    TARGETS[request.param].read(folder)
    return request.param, folder


def test_damage_that_knows_the_format(target):
    name, folder = target
    outcomes = [read_damaged(name, damaged(name, seed), folder) for seed in range(15)]
    # The graph of a TF Hub module is never looked at.
    assert set(outcomes) == {"read"} if name == "graph beside weights" else "refused" in outcomes


@few
@given(edits=EDITS)
def test_damage_that_does_not(edits, target):
    name, folder = target
    content = sound(name)
    for where, new, taken_out in edits:
        place = int(where * len(content))
        content = content[:place] + new + content[place + taken_out :]
    read_damaged(name, content, folder)


@few
@given(value=JSON)
@pytest.mark.parametrize("name", ["config.json", "albert_config.json", "index of shards"])
def test_any_json(name, value, tmp_path_factory):
    folder = copy_of(name, tmp_path_factory.mktemp("json"))
    read_damaged(name, json.dumps(value).encode(), folder)


@pytest.mark.parametrize("size", ["inner_group_num", "num_hidden_groups"])
@pytest.mark.parametrize("name", ["config.json", "albert_config.json"])
def test_an_absurd_size_is_refused_at_once(size, name, tmp_path):
    folder = copy_of(name, tmp_path)
    layers = 256 if size == "num_hidden_groups" else 1
    values = {**json.loads((folder / name).read_text()), "num_hidden_layers": layers, size: 256}
    (folder / name).write_text(json.dumps(values))
    with pytest.raises(ValueError, match=r"tensors, but its config describes 256 blocks"):
        checkpoints.read(folder)


def test_an_archive_that_claims_more_than_it_has(tmp_path):
    folder = copy_of("PyTorch zip", tmp_path)
    checkpoints.read(folder)
    # Once read 16 MiB were set aside for an entry that claims, in the list at the end, to be so long.
    with pytest.raises(ValueError, match="it is compressed"):
        checkpoints.read(with_claim(folder))


def with_claim(folder):
    file = folder / "pytorch_model.bin"
    content = bytearray(file.read_bytes())
    content[content.index(b"PK\1\2") + 23] = 1  # the highest byte of the packed size
    file.write_bytes(content)
    return folder


def test_json_without_end(tmp_path):
    folder = copy_of("config.json", tmp_path)
    (folder / "config.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match=r"config\.json is not valid JSON \(nested too deeply\); download it again"):
        checkpoints.read(folder)
