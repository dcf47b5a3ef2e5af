"""Finds what a page of the built site would load from the network."""

import html.parser
import pathlib
import re
import sys

_LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "link": "href",
}
_HARMLESS_LINKS = {"canonical", "next", "prev", "alternate"}
_IN_STYLES = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])((?:https?:)?//[^"')]+)""")


class _Page(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self._in_style = tag == "style"
        address = values.get(_LOADED.get(tag, ""), "") or ""
        if re.match("(https?:)?//", address) and not (tag == "link" and values.get("rel") in _HARMLESS_LINKS):
            self.found.append(address)
        self.found += _IN_STYLES.findall(values.get("style") or "")

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.found += _IN_STYLES.findall(data)


def network_sources(site: pathlib.Path) -> list[str]:
    """Scripts, styles, fonts and pictures with an address on the network, each with its file."""
    found = []
    for file in sorted(site.rglob("*")):
        if file.suffix == ".html":
            page = _Page()
            page.feed(file.read_text(encoding="utf-8"))
            found += [f"{file}: {address}" for address in page.found]
        elif file.suffix == ".css":
            found += [f"{file}: {address}" for address in _IN_STYLES.findall(file.read_text(encoding="utf-8"))]
    return found


if __name__ == "__main__":
    if sources := network_sources(pathlib.Path(sys.argv[1])):
        sys.exit("\n".join(sources))
