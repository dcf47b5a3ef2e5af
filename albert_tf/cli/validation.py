"""Options that a user typed become a checked record; what is wrong with them is one sentence."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pydantic

    Record = TypeVar("Record", bound=pydantic.BaseModel)


def checked(kind: "type[Record]", values: Mapping[str, Any]) -> "Record":
    """`kind(**values)`, with pydantic's report turned into one sentence.

    Raises:
        ValueError: naming the first option that cannot be.
    """
    import pydantic

    try:
        return kind(**values)
    except pydantic.ValidationError as error:
        problem = error.errors()[0]
        if problem["type"] == "value_error":
            raise ValueError(str(problem["ctx"]["error"])) from None
        name = ".".join(str(part) for part in problem["loc"])
        raise ValueError(
            f"`{name}` must be valid ({problem['msg']}). Received: {problem['input']!r}; correct it."
        ) from None
