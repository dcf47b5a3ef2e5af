"""Proves that PyTorch files give their tensors to the bit, that nothing in them runs, and that damage is a sentence."""

import collections
import pathlib
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest
import safetensors.numpy

from albert_tf.checkpoints.formats.torch_pickle import read_torch
from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "golden"
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
    word_embeddings = found["albert.embeddings.word_embeddings.weight"]
    np.testing.assert_array_equal(found["predictions.decoder.weight"], word_embeddings)
    for name in buffer:
        np.testing.assert_array_equal(found[name], np.arange(64, dtype="int64")[None], strict=True)


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


# === What is not a dictionary of tensors ===


class Attack:
    """What a pickle that runs code looks like: to unpickle it is to call `touch`."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return pathlib.Path.touch, (self.mark,)


def with_parts(path, parts, compression=zipfile.ZIP_STORED):
    """A zip file as PyTorch writes it, with other contents in these parts."""
    with zipfile.ZipFile(ZIP) as source, zipfile.ZipFile(path, "w", compression) as archive:
        for name in source.namelist():
            archive.writestr(name, parts.get(name.rpartition("/")[-1], source.read(name)))
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
        ("complex.bin", "a storage of kind torch.ComplexFloatStorage"),
        ("nested.bin", "something other than a tensor under 'a'"),
    ],
)
def test_other_values_are_refused(value, complaint, golden, tmp_path):
    path = golden("torch_file_kinds").folder / value if isinstance(value, str) else tmp_path / "pytorch_model.bin"
    if not path.exists():
        with_pickle(path, pickle.dumps(value, 2))
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


# === Damage; tests/fuzz has any other ===


@pytest.mark.parametrize("path", [ZIP, LEGACY], ids=["zip", "legacy"])
@pytest.mark.parametrize("kept", [0, 1, 100, 3000, 40000, -1])
def test_a_truncated_file(path, kept, tmp_path):
    part = tmp_path / "pytorch_model.bin"
    part.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"is not a valid PyTorch file \(.*\); download it again\.$"):
        read_torch(part)


def test_a_text_that_ends_in_the_middle_of_an_escape(tmp_path):
    path, content = tmp_path / "pytorch_model.bin", ZIP.read_bytes()
    path.write_bytes(content[:1] + b"\\" + content[2:79])
    with pytest.raises(ValueError, match="is not a valid PyTorch file"):
        read_torch(path)


def test_a_tensor_outside_its_storage(tmp_path):
    path, content = tmp_path / "pytorch_model.bin", LEGACY.read_bytes()
    assert b"KxK\x10\x86" in content
    path.write_bytes(content.replace(b"KxK\x10\x86", b"KxK\x11\x86", 1))  # a shape of (120, 16) becomes (120, 17)
    with pytest.raises(ValueError, match=r"is not a valid PyTorch file .*lies outside its storage"):
        read_torch(path)


@pytest.mark.parametrize(
    ("parts", "compression", "complaint"),
    [({}, zipfile.ZIP_DEFLATED, "it is compressed"), ({"byteorder": b"big"}, zipfile.ZIP_STORED, "big-endian")],
)
def test_other_archives(parts, compression, complaint, tmp_path):
    with pytest.raises(ValueError, match=complaint):
        read_torch(with_parts(tmp_path / "pytorch_model.bin", parts, compression))
