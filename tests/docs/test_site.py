"""Proves that the site builds without warnings and a network, and that every public name is documented."""

import functools
import importlib
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys

import griffe
import pytest

import albert_tf
from docs import hooks
from tests.docs.site import network_sources
from tests.small_pipeline import REPOSITORY

PAGES = sorted((REPOSITORY / "docs").rglob("*.md"))
PACKAGES = [name for name in albert_tf.__all__ if inspect.ismodule(getattr(albert_tf, name))]
# A network that cannot be reached: whoever tries is refused at once.
OFFLINE = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")


def build(root: pathlib.Path, site: pathlib.Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    environment = {**os.environ, **OFFLINE, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=180)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = build(REPOSITORY, folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.exhaustive
def test_every_page_is_there_and_loads_nothing_from_the_network(site):
    for page in PAGES:
        name = page.relative_to(REPOSITORY / "docs").as_posix().removesuffix(".md")
        korean = name.endswith(".ko")
        assert (site / f"{'ko/' if korean else ''}{name.removesuffix('.ko')}.html").is_file(), page
    assert 'href="../concepts.html" hreflang="en"' in (site / "ko/concepts.html").read_text(encoding="utf-8")
    korean = (site / "ko/concepts.html").read_text(encoding="utf-8")
    assert "임베딩 분해" in korean
    assert "Moving from other libraries" not in korean  # the navigation, with pages that are English only
    assert network_sources(site) == []


@pytest.mark.exhaustive
def test_every_public_name_is_in_the_reference(site):
    for name in PACKAGES:
        page = (site / f"reference/{name}.html").read_text(encoding="utf-8")
        for public in public_names(importlib.import_module(f"albert_tf.{name}")):
            assert f'id="albert_tf.{name}.{public}"' in page, f"{name}.{public}"


def test_a_source_on_the_network_is_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="https://a.b/c"></a><script src="//a.b/d.js"></script>')
    (tmp_path / "b.css").write_text('@import "https://a.b/e.css"; p { background: url(../f.png) }')
    assert [line.rpartition(": ")[2] for line in network_sources(tmp_path)] == ["//a.b/d.js", "https://a.b/e.css"]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "broken",
    [
        {"[gone](nowhere.md)": "nowhere.md", "[gone](#lost)": "lost"},
        {"::: albert_tf.nothing": "albert_tf.nothing"},
    ],
    ids=["links", "name"],
)
def test_a_broken_link_fails(broken, tmp_path):
    shutil.copytree(REPOSITORY / "docs", tmp_path / "docs")
    for name in ("mkdocs.yml", "README.md", "README.ko.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(REPOSITORY / name, tmp_path)
    for name in ("albert_tf", "training", "saved_models", "tests", "tools"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    with (tmp_path / "docs/index.md").open("a", encoding="utf-8") as page:
        page.write("".join(f"\n\n{text}\n" for text in broken))
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert all(message in done.stderr for message in broken.values()), done.stderr


def test_readers_of_plain_files_find_what_the_site_includes():
    link = re.compile(
        r'^<!-- include (\S+)(?: "(.+)")? -->\n'
        r"(?:\((?:The site shows|사이트에는 여기에) \[.+\]\((.+)\)(?: here\.|가 들어갑니다\.)\)$)?",
        re.MULTILINE,
    )
    for page in sorted((REPOSITORY / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        for file, heading, target in link.findall(text):
            path, _, anchor = target.partition("#")
            assert (page.parent / path).resolve() == REPOSITORY / file, page
            assert anchor == (heading or "").lower().replace(" ", "-"), page
        assert "The site shows" not in hooks.expand(text)


def public_names(module) -> list[str]:
    """What a package offers: `__all__`, or else what a single file defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__ and callable(value)
    ]


@functools.cache
def sources(package: str):
    return griffe.load(package)


def undocumented(module_name: str) -> list[str]:
    """Public names of a module, and public members of its classes, without a docstring."""
    root, _, path = module_name.partition(".")
    module, read = importlib.import_module(module_name), sources(root)[path] if path else sources(root)
    missing = []
    for name in public_names(module):
        value = getattr(module, name)
        if not inspect.isroutine(value) and not inspect.isclass(value):
            documented = read[name].final_target if read[name].is_alias else read[name]
            missing += [name] if documented.docstring is None else []
            continue
        own = own_members(value) if inspect.isclass(value) else []
        missing += [f"{name}.{member}" for member in own if not inspect.getdoc(getattr(value, member))]
        missing += [] if (value.__doc__ or "").strip() else [name]
    return missing


def own_members(kind: type) -> list[str]:
    """Public methods and properties, but for hooks of Keras, such as `call`, which the class's docstring explains."""
    foreign = [base for base in kind.__mro__ if not base.__module__.startswith(("albert_tf", "bare"))]
    return [
        name
        for name, part in vars(kind).items()
        if not name.startswith("_") and not any(hasattr(base, name) for base in foreign)
        if inspect.isfunction(part) or isinstance(part, property | classmethod | staticmethod)
    ]


@pytest.mark.parametrize("name", ["albert_tf", *(f"albert_tf.{name}" for name in PACKAGES)])
def test_every_public_name_has_a_docstring(name):
    if name == "albert_tf":
        assert not [public for public in albert_tf.__all__ if not inspect.getdoc(getattr(albert_tf, public))]
    else:
        assert undocumented(name) == []


def test_a_missing_docstring_is_found(tmp_path, monkeypatch):
    (tmp_path / "bare.py").write_text('class A:\n    """A."""\n    def f(self): ...\ndef g(): ...\n')
    monkeypatch.syspath_prepend(tmp_path)
    assert undocumented("bare") == ["A.f", "g"]


def test_sections_end_at_the_next_heading():
    memory = hooks.section("docs/numbers.md", "Memory")
    assert memory.startswith("Additional memory of a step")
    assert "## " not in memory
    assert hooks.section("docs/numbers.md", "Small models on small corpora").count("###") == 2
    assert hooks.section("saved_models/README.md").startswith("    albert-tf export")  # a block of code stays one
    with pytest.raises(ValueError, match="has no heading 'Nothing'"):
        hooks.expand('<!-- include README.md "Nothing" -->')


def test_examples_in_docstrings_are_fenced(tmp_path):
    (tmp_path / "example.py").write_text('"""Line.\n\n>>> 1 + 1\n2\n\nMore.\n"""\n')
    extensions = griffe.load_extensions(hooks.Doctests())
    read = griffe.load("example", search_paths=[tmp_path], extensions=extensions)
    assert read.docstring.value == "Line.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
