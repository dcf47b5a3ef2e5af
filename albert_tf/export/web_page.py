"""The playground as a page in an ONNX folder, which runs the model in the browser."""

import pathlib

PLAYGROUND = pathlib.Path(__file__).parents[1] / "serving" / "playground"
# Names of transformers.js by task; it has no ALBERT for the others.
PIPELINES = {
    "sequence_classification": "text-classification",
    "pretraining": "fill-mask",
    "masked_lm": "fill-mask",
    "question_answering": "question-answering",
    "sentence_embedding": "feature-extraction",
}
_SCRIPT = '<script src="playground.js"></script>'


def check_web_task(task: str) -> None:
    """Raises ValueError if transformers.js has no model for the task."""
    if task not in PIPELINES:
        raise ValueError(
            f"transformers.js runs {', '.join(PIPELINES)}. Received: {task}; export it with --format onnx."
        )


def write_web_page(folder: pathlib.Path, task: str) -> None:
    """Writes `index.html`, its scripts, and `package.json`, which says where to get transformers.js."""
    for name in ("playground.js", "in_browser.js", "package.json"):
        (folder / name).write_bytes((PLAYGROUND / name).read_bytes())
    page = (PLAYGROUND / "index.html").read_text(encoding="utf-8")
    engine = f'<script src="in_browser.js" data-pipeline="{PIPELINES[task]}"></script>'
    (folder / "index.html").write_text(page.replace(_SCRIPT, f"{engine}\n{_SCRIPT}"), encoding="utf-8")
