"""Writes tiny models as ONNX folders, and our engine's answers, for `transformers_js.mjs`."""

import json
import pathlib
import sys

import keras
import numpy as np

from albert_tf import models
from albert_tf.export.onnx_folder import export_onnx
from albert_tf.serving.engine import OnnxEngine
from tests.toy_task import CONFIG, tokenizer

TEXTS = ("The old man, of 1,000 words, put his HAT on.", "  Café “two”  ", "한국어 text")
MASKED = ("The old man  put his [MASK] on.", "He put his hand in his [MASK].", "[MASK]s sang")
QUESTION, CONTEXT = "Who went by?", "The old man went by the garden with a very cold house."
MODELS = {
    "classes": lambda: models.AlbertForSequenceClassification(CONFIG, labels=["gloomy", "mixed", "pleasant"]),
    "masks": lambda: models.AlbertForPreTraining(CONFIG),
    "answers": lambda: models.AlbertForQuestionAnswering(CONFIG),
    "vectors": lambda: models.AlbertForSentenceEmbedding(CONFIG, normalize=True),
}


def main(output: pathlib.Path) -> None:
    engines = {}
    for name, make in MODELS.items():
        keras.utils.set_random_seed(3)
        make().save_pretrained(output / "models" / name)
        tokenizer().save_pretrained(output / "models" / name)
        report = export_onnx(output / "models" / name, output / "onnx", name, version=1, precisions=("float32",))
        engines[name] = OnnxEngine(report.folder, "onnxruntime")
    classes, masks = (ask(engines[name], text=texts) for name, texts in (("classes", TEXTS), ("masks", MASKED)))
    answer = ask(engines["answers"], question=[QUESTION], context=[CONTEXT])
    expected = {
        "texts": TEXTS,
        "masked": MASKED,
        "question": QUESTION,
        "context": CONTEXT,
        "ids": [tokenizer()(text, allow_special=True)["input_ids"][0].tolist() for text in (*TEXTS, *MASKED)],
        "probabilities": classes["probabilities"].tolist(),
        "mask_probabilities": masks["probabilities"][:, 0].tolist(),
        "answer": answer["answer"][0].decode().lower(),
        "answer_score": answer_score(engines["answers"]),
        "vectors": ask(engines["vectors"], text=TEXTS)["sentence_embedding"].tolist(),
    }
    (output / "expected.json").write_text(json.dumps(expected, ensure_ascii=False))


def ask(engine, **texts) -> dict[str, np.ndarray]:
    arrays = {name: np.array([text.encode() for text in values], object) for name, values in texts.items()}
    return engine.run("serving_default", arrays)


def answer_score(engine) -> float:
    """transformers.js' score: the best product of probabilities of start and end among [CLS] and the context."""
    inputs = tokenizer()(QUESTION, CONTEXT)
    outputs = engine.run("tokens", inputs)
    is_open = inputs["token_type_ids"][0] == 1
    is_open[-1] = False
    places = np.append(0, np.flatnonzero(is_open))
    start, end = (np.exp(outputs[f"{edge}_logits"][0, places].astype(np.float64)) for edge in ("start", "end"))
    return float(np.triu(np.outer(start / start.sum(), end / end.sum()))[1:, 1:].max())


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
