"""What the pages take from elsewhere when the site is built, so that no fact is written twice.

In a page, `<!-- include README.md "Install" -->` stands for the section of that file with this heading; without a
heading for all of the file but its title, for a notebook with its outputs, or for a chart. The line in parentheses
after it, which readers of the plain file see instead, is dropped.
"""

import base64
import json
import pathlib
import re
from typing import Any

import griffe

REPOSITORY = pathlib.Path(__file__).parents[1]
_INCLUDE = re.compile(r'^<!-- include (\S+?)(?: "(.+)")? -->$(?:\n\(.+\)$)?', re.MULTILINE)
_HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """MkDocs calls this with the text of each page."""
    return expand(markdown, "../" * page.file.src_uri.count("/"))


def expand(markdown: str, root: str = "") -> str:
    """Replaces the directives of a page, from which `root` leads to the first page."""
    return _INCLUDE.sub(lambda match: _relinked(section(match[1], match[2]), root), markdown)


def section(file: str, heading: str | None = None) -> str:
    """The text under a heading of a file of the repository; all of it but its title if there is no heading.

    A notebook is shown with its outputs, and a chart as it is.

    Raises:
        ValueError: there is no such heading.
    """
    text = (REPOSITORY / file).read_text(encoding="utf-8")
    if file.endswith(".svg"):
        return f"![chart](data:image/svg+xml;base64,{base64.b64encode(text.encode()).decode()})"
    if file.endswith(".ipynb"):
        return notebook_page(REPOSITORY / file)
    hidden = _CODE.sub(lambda match: "x" * len(match[0]), text)  # a comment in a code block is no heading
    headings = [(len(match[1]), match[2], match.start(), match.end()) for match in _HEADING.finditer(hidden)]
    if heading is None:
        return text[headings[0][3] :].strip("\n")
    for number, (level, name, _, end) in enumerate(headings):
        if name == heading:
            following = (start for other, _, start, _ in headings[number + 1 :] if other <= level)
            return text[end : next(following, len(text))].strip("\n")
    raise ValueError(f"{file} has no heading {heading!r}; it has {', '.join(name for _, name, _, _ in headings)}.")


def _relinked(text: str, root: str) -> str:
    """Links from the repository's root: to pages they stay, and of other files the names are left."""
    pages = re.sub(r"\]\(docs/", f"]({root}", text)
    return re.sub(r"\[([^]\n]+)\]\((?:tests|training|saved_models|albert_tf)/[^)]*\)", r"\1", pages)


def notebook_page(notebook: pathlib.Path) -> str:
    """A notebook with its outputs as Markdown."""
    parts = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts.append(f"```python\n{source}\n```")
            parts += [text for output in cell["outputs"] if (text := _output(output))]
    return "\n\n".join(parts) + f"\n\nThis page is `docs/notebooks/{notebook.name}` with its outputs.\n"


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if output.get("name") == "stderr":
        return ""
    if "image/png" in data:
        return f"![plot](data:image/png;base64,{''.join(data['image/png']).strip()})"
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f"```text\n{text.rstrip()}\n```" if text else ""


class Doctests(griffe.Extension):
    """Fences the examples in docstrings, which Markdown would read as quotations."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Griffe calls this for each object that it has read."""
        if obj.docstring:
            fenced = re.sub(r"^(>>> .*?)(?=\n\n|\Z)", r"```pycon\n\1\n```", obj.docstring.value, flags=re.M | re.S)
            obj.docstring.value = fenced
