# The library's own types are inferred from lazy modules and are mostly wrong, so the checker takes all of it as Any.
from typing import Any

def __getattr__(name: str) -> Any: ...
