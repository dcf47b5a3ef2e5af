"""What a compiler wrote for one chip: its operations, and the memory that they need."""

import dataclasses
import math
import re
from collections import Counter
from typing import Any, NamedTuple

_COLLECTIVE = re.compile(
    r"= (.+?) (all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute|collective-broadcast)(?:-start)?\("
)
_ARRAY = re.compile(r"\b(pred|[a-z]+[0-9]+)\[([0-9,]*)\]")
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .*\{$")
_OPERATION = re.compile(r"^  (?:ROOT )?%?([\w.\-]+) = (.+?) ([\w\-]+)\((.*)$")
# They make no kernel: names for parts of memory.
_FREE = ("parameter", "constant", "get-tuple-element", "tuple", "bitcast", "after-all")
_ATTENTION = "__cudnn$fmha"


@dataclasses.dataclass(frozen=True)
class Collective:
    """An operation in which all chips take part: its kind, and the data types and sizes of its arrays."""

    kind: str
    arrays: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        """The number of values of all arrays."""
        return sum(size for _, size in self.arrays)


class Kernel(NamedTuple):
    """An operation that a chip starts: its kind, the bytes that it reads and writes, and its operations in products."""

    kind: str
    bytes: int
    flops: int


@dataclasses.dataclass(frozen=True)
class Program:
    """What the compiler wrote for one chip.

    Args:
        text: its operations.
        arguments: bytes of variables and batch.
        results: bytes of what it returns, without variables, which are updated in place.
        temporary: bytes in use at once besides these.
        code: bytes of the program itself.
    """

    text: str
    arguments: int
    results: int
    temporary: int
    code: int

    @classmethod
    def of(cls, text: str, memory: Any) -> "Program":
        """A Program of the compiler's text and its analysis of memory."""
        results = memory.output_size_in_bytes - memory.alias_size_in_bytes
        sizes = (memory.argument_size_in_bytes, results, memory.temp_size_in_bytes)
        return cls(text, *sizes, memory.generated_code_size_in_bytes)

    @property
    def memory(self) -> int:
        """Bytes of the chip's memory that are in use at once."""
        return self.arguments + self.results + self.temporary + self.code

    @property
    def collectives(self) -> list[Collective]:
        """The operations in which all chips take part."""
        return [
            Collective(kind, tuple((dtype, math.prod(sizes)) for dtype, sizes in _arrays(shape)))
            for shape, kind in _COLLECTIVE.findall(self.text)
        ]

    @property
    def custom_calls(self) -> Counter[str]:
        """What it calls by name, and how often."""
        return Counter(re.findall(r'custom_call_target="([^"]+)"', self.text))

    @property
    def loops(self) -> int:
        """The number of loops."""
        return len(re.findall(r" while\(", self.text))

    def ways_to_host(self) -> list[str]:
        """The operations that exchange data with the machine of the chip."""
        return re.findall(r" (infeed|outfeed|send|recv|send-done|recv-done)\(", self.text)

    def kernels(self) -> list[Kernel]:
        """The kernels of a program without loops, in order."""
        computations = _computations(self.text)
        kernels, shapes = [], {name: shape for name, shape, *_ in computations["ENTRY"]}
        for name, shape, kind, rest in computations["ENTRY"]:
            if kind in _FREE:
                continue
            operands = [shapes[one] for one in re.findall(r"%([\w.\-]+)", rest.split("), ")[0]) if one in shapes]
            flops = 0
            if kind == "fusion":
                called = re.findall(r"calls=%?([\w.\-]+)", rest)
                flops = sum(_flops_of_products(computations, one) for one in called)
                kind = "product" if flops else re.sub(r"[.\d]+$", "", name)
            elif kind == "custom-call":
                kind = re.findall(r'custom_call_target="([^"]+)"', rest)[0]
                flops = _flops_of_call(kind, shape, operands, rest)
                kind = "product" if kind.startswith("__cublas") else kind
            elif kind == "dot":
                kind, flops = "product", _flops(shape, operands[0], rest)
            kernels.append(Kernel(kind, sum(map(_bytes, (shape, *operands))), flops))
        return kernels


def _computations(text: str) -> dict[str, list[tuple[str, str, str, str]]]:
    """The operations of each computation, that of the program as "ENTRY": name, shape, kind, rest of the line."""
    found, operations = {}, []
    for line in text.splitlines():
        if match := _COMPUTATION.match(line):
            operations = found["ENTRY" if match[1] else match[2]] = []
        elif match := _OPERATION.match(line):
            operations.append(match.groups())
    return found


def _arrays(shape: str) -> list[tuple[str, list[int]]]:
    """Data types and sizes of the arrays of a shape, which may be a tuple."""
    without_layouts = re.sub(r"\{[^{}]*\}", "", shape)
    return [(dtype, [*map(int, filter(None, sizes.split(",")))]) for dtype, sizes in _ARRAY.findall(without_layouts)]


def _bytes(shape: str) -> int:
    widths = ((dtype, sizes, re.sub(r"\D", "", dtype)) for dtype, sizes in _arrays(shape))
    return sum(math.prod(sizes) * (int(width) // 8 if width else 1) for _, sizes, width in widths)


def _flops_of_products(computations: dict[str, list], name: str) -> int:
    """The operations of the matrix products in a computation and in those that it calls."""
    operations, total = computations.get(name, []), 0
    shapes = {name: shape for name, shape, *_ in operations}
    for _, shape, kind, rest in operations:
        if kind == "dot":
            total += _flops(shape, shapes[re.findall(r"%([\w.\-]+)", rest)[0]], rest)
        total += sum(
            _flops_of_products(computations, one) for one in re.findall(r"(?:calls|to_apply)=%?([\w.\-]+)", rest)
        )
    return total


def _flops(shape: str, left: str, rest: str) -> int:
    """The operations of a product from the shapes of its result and of its left factor."""
    (contracted,) = re.findall(r'lhs_contracting_dim(?:ension)?s"?[=:] ?[{\[]"?(\d+)', rest)
    return 2 * math.prod(_arrays(shape)[0][1]) * _arrays(left)[0][1][int(contracted)]


def _flops_of_call(target: str, shape: str, operands: list[str], rest: str) -> int:
    if target.startswith("__cublas"):
        return _flops(shape, operands[0], rest)
    if not target.startswith(_ATTENTION):
        return 0
    length = int(re.findall(r'"dimensions": ?\["\d+", ?"\d+", ?"(\d+)"', rest)[0])  # of the logits
    products = 5 if target.endswith("Backward") else 2
    return products * 2 * length * math.prod(_arrays(operands[0])[0][1])
