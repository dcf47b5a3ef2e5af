"""What the CPU can do."""

import functools
import pathlib


@functools.cache
def has_amx() -> bool:
    """Whether the CPU multiplies matrices of bfloat16 in units of their own; known on Linux only."""
    try:
        return " amx_bf16" in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
