"""Proves that PyTorch files give their tensors to the bit, that nothing in them runs, and that damage is a sentence."""

import collections
import pathlib
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from albert_tf.checkpoints.formats.torch_pickle import read_torch

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
FORMATS = GOLDEN / "hf_for_pretraining_formats"
ZIP, LEGACY, OLD = (FORMATS / name / "pytorch_model.bin" for name in ("zip", "legacy", "old_names"))
SECOND_NAMES = {"predictions.decoder.weight", "predictions.decoder.bias"}


@pytest.mark.parametrize("path", [ZIP, LEGACY, OLD], ids=["zip", "legacy", "old_names"])
def test_every_tensor_to_the_bit(path):
    expected = safetensors.numpy.load_file(GOLDEN / "hf_for_pretraining" / "model.safetensors")
    found = read_torch(path)
    buffer = {"albert.embeddings.position_ids"} if path == OLD else set()
    assert set(found) == set(expected) | SECOND_NAMES | buffer
    for name, array in expected.items():
        assert found[name].dtype == np.float32
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_integers_and_second_names():
    found = read_torch(OLD)
    np.testing.assert_array_equal(found["albert.embeddings.position_ids"], np.arange(64, dtype="int64")[None])
    np.testing.assert_array_equal(
        found["predictions.decoder.weight"], found["albert.embeddings.word_embeddings.weight"]
    )


@pytest.mark.parametrize("name", ["zip", "legacy"])
def test_every_kind_of_tensor(name, golden):
    case = golden("torch_file_kinds")
    found = read_torch(case.folder / f"{name}.bin")
    assert {key: str(found[key].dtype) for key in ("half", "bfloat16", "int64", "double")} == {
        **{"half": "float16", "bfloat16": "bfloat16", "int64": "int64", "double": "float64"}
    }
    assert set(found) == set(case.arrays)
    for key, array in case.arrays.items():
        np.testing.assert_array_equal(found[key].astype(array.dtype), array, err_msg=key)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("complex", "a storage of kind torch.ComplexFloatStorage"), ("nested", "something other than a tensor under 'a'")],
)
def test_kinds_that_are_refused(name, complaint, golden):
    with pytest.raises(ValueError, match=f"contains {complaint}, but only tensors are read"):
        read_torch(golden("torch_file_kinds").folder / f"{name}.bin")


# === What is not a dictionary of tensors ===


class Attack:
    """What a pickle that runs code looks like: to unpickle it is to call `touch`."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return pathlib.Path.touch, (self.mark,)


def with_parts(path, parts=(), compression=zipfile.ZIP_STORED):
    """A zip file as PyTorch writes it, with other contents in these parts."""
    with zipfile.ZipFile(ZIP) as source, zipfile.ZipFile(path, "w", compression) as archive:
        for name in source.namelist():
            archive.writestr(name, dict(parts).get(name.rpartition("/")[-1], source.read(name)))
    return path


def with_pickle(path, content):
    return with_parts(path, {"data.pkl": content})


@pytest.mark.parametrize("protocol", [0, 1, 2, 4, 5])
@pytest.mark.parametrize("kind", ["zip", "stream"])
def test_code_does_not_run(kind, protocol, tmp_path):
    mark, path = tmp_path / "ran", tmp_path / "pytorch_model.bin"
    content = pickle.dumps({"weight": Attack(mark)}, protocol)
    if kind == "zip":
        with_pickle(path, content)
    else:
        path.write_bytes(LEGACY.read_bytes()[:137] + content)
    with pytest.raises(ValueError, match=r"\.bin contains .*, but only tensors are read .*safetensors\.$"):
        read_torch(path)
    assert not mark.exists()
    pickle.loads(content)
    assert mark.exists()  # the attack is a real one


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({"weight": 3}, "something other than a tensor under 'weight'"),
        ([1, 2], "something other than a dictionary"),
        ({"weight": {}}, "something other than a tensor under 'weight'"),
        ({3: 3}, "a name that is not a string"),
        (collections.Counter("a"), "a call of collections.Counter"),
        ({"a": 0.5}, "the opcode BINFLOAT"),
    ],
)
def test_other_values_are_refused(value, complaint, tmp_path):
    path = with_pickle(tmp_path / "pytorch_model.bin", pickle.dumps(value, 2))
    with pytest.raises(ValueError, match=f"contains {complaint}, but only tensors are read"):
        read_torch(path)


def text(value):
    return b"X" + len(value).to_bytes(4, "little") + value


@pytest.mark.parametrize("state", [b"}" + text(b"mark") + b"K\1s", b"N}" + text(b"mark") + b"K\1s\x86"])
def test_what_a_file_names_stays_as_it_is(state, tmp_path):
    """An object's state sets attributes, of classes too."""
    path = with_pickle(tmp_path / "pytorch_model.bin", b"\x80\x02ccollections\nOrderedDict\n" + state + b"b.")
    with pytest.raises(ValueError, match="is not a valid PyTorch file"):
        read_torch(path)
    assert not hasattr(collections.OrderedDict, "mark")


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        (b"\x80\x02}r\xff\xff\xff\xff.", "it refers to values that it does not have"),
        (b"\x96" + (2**40).to_bytes(8, "little") + b".", "bytes in a bytearray8"),
        (b"\x80\x02}" + text(b"a") + b"\x8b\xff\xff\xff\x7f.", "not enough data in stream to read long4"),
    ],
)
def test_a_program_that_claims_much_memory(program, complaint, tmp_path):
    path = with_pickle(tmp_path / "pytorch_model.bin", program)
    tracemalloc.start()
    with pytest.raises(ValueError, match=complaint):
        read_torch(path)
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


# === Damage ===


@pytest.mark.parametrize("path", [ZIP, LEGACY], ids=["zip", "legacy"])
@pytest.mark.parametrize("kept", [0, 1, 100, 3000, 40000, -1])
def test_a_truncated_file(path, kept, tmp_path):
    part = tmp_path / "pytorch_model.bin"
    part.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"is not a valid PyTorch file \(.*\); download it again\.$"):
        read_torch(part)


def test_a_tensor_outside_its_storage(tmp_path):
    path, content = tmp_path / "pytorch_model.bin", LEGACY.read_bytes()
    assert b"KxK\x10\x86" in content
    path.write_bytes(content.replace(b"KxK\x10\x86", b"KxK\x11\x86", 1))  # a shape of (120, 16) becomes (120, 17)
    with pytest.raises(ValueError, match=r"is not a valid PyTorch file .*lies outside its storage"):
        read_torch(path)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [({"compression": zipfile.ZIP_DEFLATED}, "it is compressed"), ({"parts": {"byteorder": b"big"}}, "big-endian")],
    ids=["compressed", "big-endian"],
)
def test_other_archives(changes, complaint, tmp_path):
    path = with_parts(tmp_path / "pytorch_model.bin", **changes)
    with pytest.raises(ValueError, match=complaint):
        read_torch(path)


def read_or_refuse(content, path):
    path.write_bytes(content)
    tracemalloc.start()
    complaint = ""
    try:
        read_torch(path)
    except ValueError as error:
        complaint = str(error)
    assert "\n" not in complaint
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


FLIPS = st.lists(st.tuples(st.integers(0, 7500), st.integers(0, 255)), min_size=1, max_size=8)


@settings(derandomize=True, max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@example(flips=[(1, 92)], which=ZIP, cut=79)  # a text that ends in the middle of an escape
@given(flips=FLIPS, which=st.sampled_from([ZIP, LEGACY, OLD]), cut=st.integers(0, 70000))
def test_any_damage_is_a_value_error_and_small(flips, which, cut, tmp_path):
    content = bytearray(which.read_bytes())
    for place, value in flips:
        content[place % len(content)] = value
    content = bytes(content if cut > 50000 else content[:cut])
    # The instructions of a small file weigh more than its tensors, so that there is something to add.
    assert read_or_refuse(content, tmp_path / "pytorch_model.bin") < 2 * len(content) + 1_500_000


@settings(derandomize=True, max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=st.binary(max_size=200))
def test_any_program_is_a_value_error(program, tmp_path):
    read_or_refuse(LEGACY.read_bytes()[:137] + program, tmp_path / "pytorch_model.bin")
