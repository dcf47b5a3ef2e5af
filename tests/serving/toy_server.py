"""An engine that needs no model, and a server around it in the test's own event loop."""

import asyncio
import contextlib
import copy
import functools
import pathlib
import time
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np

from albert_tf.inference.signatures import Signature
from albert_tf.serving.batching import Batcher
from albert_tf.serving.hosts import Hosts
from albert_tf.serving.metrics import Metrics
from albert_tf.serving.options import ServerOptions
from albert_tf.serving.rest import make_app
from albert_tf.serving.versions import ModelRoot, ServedModels
from albert_tf.tasks.outputs import TensorSpec

TEXT, IDS = TensorSpec("string", (None,)), TensorSpec("int32", (None, None))
NUMBER = TensorSpec("float32", (None,))


class ToyEngine:
    """Says of a text how much of it is vowels; its entities are the capital letters.

    A batch with a text that begins with "bad" raises ValueError, which quotes it, one with "crash" RuntimeError.
    """

    name, precision, reads_windows = "toy", "", False
    signatures = {
        "serving_default": Signature(
            {"text": TEXT}, {"label": TEXT, "score": NUMBER, "probabilities": TensorSpec("float32", (None, 2))}
        ),
        "labels": Signature({}, {"labels": TensorSpec("string", (2,))}),
        "pair": Signature({"text": TEXT, "text_pair": TEXT}, {"score": NUMBER}),
        "tokens": Signature({"input_ids": IDS}, {"sum": TensorSpec("int32", (None,))}),
        "entities": Signature(
            {"text": TEXT},
            {"entity_text": TensorSpec("string", (None, None)), "entity_start": TensorSpec("int32", (None, None))},
        ),
        "attention": Signature(
            {"text": TEXT},
            {
                "tokens": TensorSpec("string", (None, None)),
                "attention": TensorSpec("float32", (None, 1, None, None)),
            },
        ),
    }

    def __init__(self, seconds: float = 0.0):
        self.seconds = seconds
        self.batches: list[dict[str, np.ndarray]] = []

    def run(self, signature: str, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        self.batches.append(dict(inputs))
        time.sleep(self.seconds)
        texts = list(inputs.get("text", ()))
        for text in texts:
            if text.startswith(b"bad"):
                raise ValueError(f"The text is {text.decode()}.")
        if b"crash" in texts:
            raise RuntimeError("secret")
        return getattr(self, f"_{signature}")(**inputs)

    def _serving_default(self, text):
        vowels = np.array([shares(value) for value in text], np.float32)
        probabilities = np.stack([1 - vowels, vowels], axis=1)
        labels = np.array([b"consonants", b"vowels"], object)
        return {
            "label": labels[probabilities.argmax(1)],
            "score": probabilities.max(1),
            "probabilities": probabilities,
        }

    def _labels(self):
        return {"labels": np.array([b"consonants", b"vowels"], object)}

    def _pair(self, text, text_pair):
        return {"score": np.array([len(one) - len(two) for one, two in zip(text, text_pair)], np.float32)}

    def _tokens(self, input_ids):
        return {"sum": input_ids.sum(axis=1, dtype=np.int32)}

    def _attention(self, text):
        longest = max(map(len, text))
        tokens = np.full((len(text), longest), b"", object)
        attention = np.zeros((len(text), 1, longest, longest), np.float32)
        for row, value in enumerate(text):
            tokens[row, : len(value)] = [bytes([byte]) for byte in value]
            attention[row, :, : len(value), : len(value)] = 1 / max(len(value), 1)
        return {"tokens": tokens, "attention": attention}

    def _entities(self, text):
        found = [[(i, c) for i, c in enumerate(value.decode()) if c.isupper()] for value in text]
        longest = max(map(len, found))
        starts, texts = np.full((len(text), longest), -1, np.int32), np.full((len(text), longest), b"", object)
        for row, capitals in enumerate(found):
            for column, (index, letter) in enumerate(capitals):
                starts[row, column], texts[row, column] = index, letter.encode()
        return {"entity_text": texts, "entity_start": starts}


def shares(text: bytes) -> float:
    """The share of vowels."""
    return sum(text.count(vowel) for vowel in (b"a", b"e", b"i", b"o", b"u")) / max(len(text), 1)


def write_version(model: pathlib.Path, number: int | str, content: str = "{}") -> pathlib.Path:
    """A version folder, published by one rename as an export is."""
    partial = model / f".{number}"
    partial.mkdir(parents=True)
    (partial / "onnx").mkdir()
    (partial / "model.json").write_text(content)
    return partial.rename(model / str(number))


@contextlib.asynccontextmanager
async def toy_server(
    root: pathlib.Path, engine: Any = None, hosts: Hosts | None = None, **options
) -> AsyncIterator[SimpleNamespace]:
    """A client of a server in this event loop, its models and its engine."""
    engine, metrics, options = engine or ToyEngine(), Metrics(), ServerOptions(**options)
    make_batcher = functools.partial(Batcher, options=options, metrics=metrics)
    models = ServedModels(ModelRoot(root), lambda _: copy.copy(engine), make_batcher)
    await models.refresh()
    app = make_app(models, metrics, options, hosts)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
        yield SimpleNamespace(client=client, models=models, engine=engine, app=app)
    models.close()


def run(scenario: Callable) -> Any:
    """Runs an asynchronous function in an event loop of its own."""
    return asyncio.run(scenario())
