"""What libtpu, the compiler of TPUs, makes of a program on a machine without one."""

import dataclasses
import math
import os
import re
from typing import Any

# Without these it asks the cloud, in vain and for minutes, which TPU this is.
os.environ |= {"TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost", "TPU_ACCELERATOR_TYPE": "v5litepod-8"}
os.environ |= {"ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "JAX_PLATFORMS": "cpu"}

import jax
from jax.experimental import topologies

# Slices of 8 and of 256 chips: how many in each direction.
TOPOLOGIES = {
    "v5e": {8: "2x4", 256: "16x16"},
    "v5p": {8: "2x2x2", 256: "4x8x8"},
    "v6e": {8: "2x4", 256: "16x16"},
}
_COLLECTIVE = re.compile(
    r"= (.+?) (all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute|collective-broadcast)(?:-start)?\("
)
_ARRAY = re.compile(r"\b([a-z]+[0-9]*)\[([0-9,]*)\]")


class DoesNotFit(Exception):  # noqa: N818
    """A program needs more memory than a chip has; both in bytes."""

    def __init__(self, needed: int, usable: int):
        super().__init__(f"{needed / 2**30:.2f} GiB needed of {usable / 2**30:.2f}")
        self.needed, self.usable = needed, usable


@dataclasses.dataclass(frozen=True)
class Collective:
    """An operation in which all chips take part: its kind, and the data types and sizes of its arrays."""

    kind: str
    arrays: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        """The number of values of all arrays."""
        return sum(size for _, size in self.arrays)


@dataclasses.dataclass(frozen=True)
class Program:
    """What the compiler wrote for one chip.

    Args:
        text: its operations.
        arguments: bytes of variables and batch.
        results: bytes of what it returns, without variables, which are updated in place.
        memory: bytes of the chip's memory that are in use at once, and of the program.
    """

    text: str
    arguments: int
    results: int
    memory: int

    @property
    def collectives(self) -> list[Collective]:
        """The operations in which all chips take part."""
        return [
            Collective(
                kind, tuple((dtype, math.prod(map(int, filter(None, size.split(","))))) for dtype, size in arrays)
            )
            for shape, kind in _COLLECTIVE.findall(self.text)
            for arrays in [_ARRAY.findall(re.sub(r"\{[^{}]*\}", "", shape))]
        ]

    @property
    def custom_calls(self) -> set[str]:
        """What it calls by name."""
        return set(re.findall(r'custom_call_target="([^"]+)"', self.text))

    @property
    def loops(self) -> int:
        """The number of loops."""
        return len(re.findall(r" while\(", self.text))

    def ways_to_host(self) -> list[str]:
        """The operations that exchange data with the machine of the chip."""
        return re.findall(r" (infeed|outfeed|send|recv|send-done|recv-done)\(", self.text)


def slice_of(chip: str, count: int) -> Any:
    """The description of a slice of `count` chips, which need not exist."""
    return topologies.get_topology_desc(platform="tpu", topology_name=f"{chip}:{TOPOLOGIES[chip][count]}")


def program(text: str, memory: Any) -> Program:
    """A Program of the compiler's text and its analysis of memory."""
    arguments, results = memory.argument_size_in_bytes, memory.output_size_in_bytes - memory.alias_size_in_bytes
    others = memory.temp_size_in_bytes + memory.generated_code_size_in_bytes
    return Program(text, arguments, results, arguments + results + others)


def does_not_fit(error: Exception) -> Exception:
    """DoesNotFit if the compiler ran out of memory, otherwise the error itself."""
    match = re.search(r"Used ([\d.]+[KMGT]) of ([\d.]+[KMGT]) hbm", str(error))
    return error if match is None else DoesNotFit(*map(_bytes, match.groups()))


def usable_memory(chip: str) -> int:
    """Bytes of a chip's memory that a program may use."""
    mesh = topologies.make_mesh(slice_of(chip, 8), (8,), ("chip",))
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    arrays = [jax.ShapeDtypeStruct((2**16, 2**16), "float32", sharding=everywhere)] * 8
    try:
        jax.jit(sum).lower(arrays).compile()
    except jax.errors.JaxRuntimeError as error:
        found = does_not_fit(error)
        if isinstance(found, DoesNotFit):
            return found.usable
        raise
    raise AssertionError(f"{chip} has 128 GiB or more")


def _bytes(text: str) -> int:
    """The number that the compiler writes as, say, 15.75G."""
    return round(float(text[:-1]) * 1024 ** (1 + "KMGT".index(text[-1])))
