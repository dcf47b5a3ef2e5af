"""What the programs `peer_*.py` share: reading our side, collecting differences, and printing them as one table.

    python tools/parity/peer_table.py runs/parity/peers

The exit status is 1 where an output differs by more than 1e-5, a known deviation by more than 1e-3, or where a key of
ours was missing or unexpected. Needs NumPy alone, because it runs in every environment.
"""

import json
import pathlib
import sys

import numpy as np

TOLERANCE = 1e-5
DEVIATION_TOLERANCE = 1e-3


def load(path: pathlib.Path) -> dict[str, np.ndarray]:
    """The arrays of one file by name."""
    with np.load(path) as file:
        return dict(file)


class Findings:
    """The differences between ours and one peer, by output and config.

    Args:
        root: folder that `peer_ours.py` has written.
        peer: str. File name for the findings.
        title: str. The peer's name and version.
    """

    def __init__(self, root: pathlib.Path, peer: str, title: str):
        self.path = root / f"{peer}.json"
        self.content = {"title": title, "rows": {}}

    def add(self, config: str, output: str, theirs, ours, deviation: str = "") -> None:
        """Compares one output; `deviation` says why the peer is known to differ."""
        theirs, ours = np.asarray(theirs), np.asarray(ours)
        if theirs.shape != ours.shape:
            raise ValueError(f"Both sides must have one shape. Received: {output}: {theirs.shape} and {ours.shape}.")
        self.add_number(config, output, float(np.max(np.abs(theirs.astype("float64") - ours))), deviation)

    def add_number(self, config: str, output: str, number: float, deviation: str = "") -> None:
        """Notes a difference, or a number that must be 0."""
        row = self.content["rows"].setdefault(output, {"deviation": deviation, "configs": {}})
        row["configs"][config] = number

    def write(self) -> None:
        """Leaves the findings where `main` looks for them."""
        self.path.write_text(json.dumps(self.content, indent=1))


def show(number: float | None) -> str:
    """A cell of the table; "-" where the peer cannot have the config or has no such output."""
    return "-" if number is None else f"{number:.1e}" if number else "0"


def main(root: pathlib.Path) -> int:
    """Prints one table of all findings; the exit status."""
    findings = [json.loads(path.read_text()) for path in sorted(root.glob("*.json"))]
    configs = sorted({config for one in findings for row in one["rows"].values() for config in row["configs"]})
    columns = "".join(f"{config:>26}" for config in reversed(configs))
    print(f"Largest absolute difference, padded positions included\n{'':56}{columns}")
    failed = False
    for one in findings:
        print(one["title"])
        for output, row in one["rows"].items():
            numbers = [row["configs"].get(config) for config in reversed(configs)]
            cells = "".join(f"{show(number):>26}" for number in numbers)
            allowed = DEVIATION_TOLERANCE if row["deviation"] else TOLERANCE
            is_wrong = any(not (number is None or number <= allowed) for number in numbers)
            note = f"  known: {row['deviation']}" if row["deviation"] else ""
            print(f"  {output:54}{cells}{'  FAIL' if is_wrong else ''}{note}")
            failed |= is_wrong
    failed |= not findings
    verdict = "FAIL" if failed else "pass"
    print(f"allowed {TOLERANCE:.0e}, known deviations {DEVIATION_TOLERANCE:.0e}: {verdict}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
