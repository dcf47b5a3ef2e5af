"""The reference's questions and windows (golden case Q1)."""

import functools
import gzip
import json
import pathlib
import tempfile

from albert_tf.tasks.question_answering.files import read_questions
from albert_tf.tasks.question_answering.questions import QuestionWindows, encode_questions
from albert_tf.tokenization import AlbertTokenizer
from tests.conftest import ROOT

FEATURES = ROOT / "tests/golden/Q1_squad_features"
LAYOUTS = {"squad_v2": (384, 128, 64), "xquad_en": (384, 128, 64), "squad_v2_short": (128, 48, 12)}


@functools.cache
def windows_of(name: str) -> QuestionWindows:
    """The windows that we make of the questions of a case."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"{name}.json"
        path.write_bytes(gzip.decompress((FEATURES / f"{name}.json.gz").read_bytes()))
        return encode_questions(AlbertTokenizer.english(), read_questions(path), *LAYOUTS[name])


@functools.cache
def features_of(name: str) -> list[dict]:
    """The windows that the reference made of them."""
    with gzip.open(FEATURES / f"{name}.features.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
