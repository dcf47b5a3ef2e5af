"""Writes tiny models as ONNX folders, and our engine's answers, for `transformers_js.mjs` and `web_page.mjs`.

For the picture of attention, one is written as a SavedModel too.
"""

import json
import pathlib
import shutil
import sys
from typing import Any

import keras
import numpy as np

from albert_tf import models
from albert_tf.export import export_saved_model
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
    "numbers": lambda: models.AlbertForSequenceClassification(CONFIG, problem="regression"),
    "topics": lambda: models.AlbertForSequenceClassification(CONFIG, problem="multi_label", labels=["a", "b"]),
    "pairs": lambda: models.AlbertForSequenceClassification(CONFIG, labels=["no", "yes"]),
    "vectors": lambda: models.AlbertForSentenceEmbedding(CONFIG, normalize=True),
}


def main(output: pathlib.Path) -> None:
    engines = {}
    for name, make in MODELS.items():
        keras.utils.set_random_seed(3)
        make().save_pretrained(output / "models" / name)
        tokenizer().save_pretrained(output / "models" / name)
        if name == "pairs":
            (output / "models" / name / "recipe.json").write_text('{"pair_column": "text_pair"}')
        report = export_onnx(
            output / "models" / name, output / "onnx", name, version=1, precisions=("float32",), web_page=True
        )
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
    rows = {
        **{name: [{"text": text} for text in TEXTS] for name in ("classes", "numbers", "topics")},
        "pairs": [{"text": text, "text_pair": pair} for text, pair in zip(TEXTS, TEXTS[::-1])],
        "masks": [{"text": text} for text in (*MASKED, "Two [MASK] and [MASK].")],
        "answers": [
            {"question": QUESTION, "context": context}
            for context in (CONTEXT, "Cafés: the old man.", "🙂 The old man, the OLD man. 🙂 Café")
        ],
        "vectors": [{"text": text} for text in TEXTS],
    }
    expected["pages"] = {
        name: [{"row": row, "answer": answer_of(engines[name], row)} for row in rows[name]] for name in engines
    }
    export_saved_model(output / "models" / "classes", output / "saved_models", "classes", attention=True)
    model = MODELS["classes"]().from_pretrained(output / "models" / "classes")
    inputs = tokenizer()([TEXTS[0]])
    attentions = np.asarray(model.encoder(inputs, output_attentions=True)["attentions"])
    expected["attention"] = {"text": TEXTS[0], "layers": attentions[:, 0].tolist()}
    shutil.copy(output / "onnx" / "classes" / "1" / "package.json", output)
    (output / "expected.json").write_text(json.dumps(expected, ensure_ascii=False))


def ask(engine, **texts) -> dict[str, np.ndarray]:
    arrays = {name: np.array([text.encode() for text in values], object) for name, values in texts.items()}
    return engine.run("serving_default", arrays)


def answer_of(engine, row: dict[str, str]) -> dict[str, Any]:
    """The answer to a row as the page has it."""
    outputs = ask(engine, **{name: [text] for name, text in row.items()})
    names = {"label", "labels", "score", "probabilities", "pieces", "answer", "start", "end", "null_odds"}
    names.add("sentence_embedding")
    decoded = {
        name: np.char.decode(array.astype(bytes)) if array.dtype == object else array
        for name, array in outputs.items()
        if name in names
    }
    return {name: array[0].tolist() for name, array in decoded.items()}


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
