"""Code points for sweeps: all that Unicode assigns, and one in 97 of the others, which no rule tells apart."""

import functools
import unicodedata


@functools.cache
def assigned_code_points() -> list[int]:
    """In order, surrogates included."""
    return [code for code in range(0x110000) if code % 97 == 0 or unicodedata.category(chr(code)) not in ("Cn", "Co")]
