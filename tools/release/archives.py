"""Checks what wheel and sdist hold: `python -m tools.release.archives dist`, as `make release-check` does."""

import pathlib
import sys
import tarfile
import zipfile

from albert_tf import __version__

ROOT = pathlib.Path(__file__).parents[2]
IN_WHEEL = ("LICENSE", "NOTICE", "LICENSE.30k-clean.txt")
IN_SDIST = (
    *(
        "LICENSE",
        "NOTICE",
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CITATION.cff",
        "pyproject.toml",
    ),
    *("docs/index.md", "mkdocs.yml", "training/recipes/base_v2.toml", "training/README.md", "saved_models/README.md"),
)
MAX_MEGABYTES = 5


def faults(folder: pathlib.Path) -> list[str]:
    """What is wrong with the archives of a folder."""
    stem = f"albert_tf-{__version__}"
    wheel, sdist = folder / f"{stem}-py3-none-any.whl", folder / f"{stem}.tar.gz"
    found = [f"{file} is missing" for file in (wheel, sdist) if not file.is_file()]
    if found:
        return found
    found += [
        f"{file} has over {MAX_MEGABYTES} MB" for file in (wheel, sdist) if file.stat().st_size > MAX_MEGABYTES * 1e6
    ]
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    with tarfile.open(sdist) as archive:
        in_sdist = {name.removeprefix(f"{stem}/") for name in archive.getnames()}
    package = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "albert_tf").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    wanted = package | {f"{stem}.dist-info/licenses/{name}" for name in IN_WHEEL[:2]}
    wanted.add(f"{stem}.dist-info/licenses/albert_tf/assets/{IN_WHEEL[2]}")
    found += [f"{wheel.name} lacks {name}" for name in sorted(wanted - in_wheel)]
    tops = {name.split("/")[0] for name in in_wheel} - {"albert_tf", f"{stem}.dist-info"}
    found += [f"{wheel.name} holds {name} besides the package" for name in sorted(tops)]
    found += [
        f"{wheel.name} holds {name}"
        for name in sorted(in_wheel)
        if name.startswith("albert_tf/") and name not in package
    ]
    found += [f"{sdist.name} lacks {name}" for name in sorted({*package, *IN_SDIST} - in_sdist)]
    found += [
        f"{sdist.name} holds {name}" for name in sorted(in_sdist) if name.startswith(("tests", "training/sample_data"))
    ]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if f"\n## [{__version__}]" not in changelog and "\n## [Unreleased]" not in changelog:
        found.append(f"CHANGELOG.md has no entry for {__version__}")
    if f"\nversion: {__version__}\n" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8"):
        found.append(f"CITATION.cff does not name version {__version__}")
    return found


if __name__ == "__main__":
    if mistakes := faults(pathlib.Path(sys.argv[1])):
        sys.exit("\n".join(mistakes))
    print("wheel and sdist hold what they should")
