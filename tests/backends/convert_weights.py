"""Writes the golden checkpoints of the reference in Hugging Face's layout, which is read without TensorFlow."""

import pathlib

from albert_tf import checkpoints

ROOT = pathlib.Path(__file__).parents[2]
GOLDEN, WEIGHTS = ROOT / "tests" / "golden", ROOT / "build" / "golden_weights"


def main() -> None:
    """Every folder of model and optimizer cases becomes one of the same name below `WEIGHTS`."""
    for index in sorted(GOLDEN.glob("[MO]*/**/model.ckpt*.index")):
        target = WEIGHTS / index.parent.relative_to(GOLDEN)
        checkpoints.write(checkpoints.read(index.parent), target, to="huggingface")


if __name__ == "__main__":
    main()
