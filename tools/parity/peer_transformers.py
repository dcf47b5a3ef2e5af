"""Loads our folders with Hugging Face transformers and compares every output.

    .venv-parity-transformers/bin/python tools/parity/peer_transformers.py runs/parity/peers

Its activation follows the config: "gelu" is the erf form, "gelu_new" the tanh form.

Letters: B batch, C choices, L sequence.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers
from peer_table import Findings, load

# Our model, its outputs, and theirs for each.
MODELS = {
    "AlbertEncoder": (
        "AlbertModel",
        {
            "sequence_output": "last_hidden_state",
            "pooled_output": "pooler_output",
            "hidden_states": "hidden_states",
            "attentions": "attentions",
        },
    ),
    "AlbertForPreTraining": (
        "AlbertForPreTraining",
        {"masked_lm_logits": "prediction_logits", "sentence_order_logits": "sop_logits"},
    ),
    "AlbertForMaskedLM": ("AlbertForMaskedLM", {"logits": "logits"}),
    "AlbertForMaskedLM, epsilon 1e-5": ("AlbertForMaskedLM", {"logits": "logits"}),
    "AlbertForMaskedLM, resized": ("AlbertForMaskedLM", {"logits": "logits"}),
    "AlbertForSequenceClassification": ("AlbertForSequenceClassification", {"logits": "logits"}),
    "AlbertForTokenClassification": ("AlbertForTokenClassification", {"logits": "logits"}),
    "AlbertForQuestionAnswering": (
        "AlbertForQuestionAnswering",
        {"start_logits": "start_logits", "end_logits": "end_logits"},
    ),
    "AlbertForMultipleChoice": ("AlbertForMultipleChoice", {"logits": "logits"}),
}
DEVIATIONS = {"AlbertForMaskedLM, epsilon 1e-5": "it has one epsilon for all normalisations"}


def compare(findings, config: pathlib.Path, name: str, inputs) -> None:
    """One of our models, loaded by theirs."""
    class_name, outputs = MODELS[name]
    settings = {"attn_implementation": "eager"} if name == "AlbertEncoder" else {}  # the default keeps no attentions
    model, info = getattr(transformers, class_name).from_pretrained(
        config / name, output_loading_info=True, dtype=torch.float32, **settings
    )
    bad = [*info["missing_keys"], *info["unexpected_keys"], *info["mismatched_keys"]]
    findings.add_number(config.name, f"{name}: keys that do not fit", len(bad))
    if name == "AlbertForMultipleChoice":
        inputs = {key: array.reshape(2, 2, -1) for key, array in inputs.items()}  # [B, C, L]
    wanted = {"output_hidden_states": True, "output_attentions": True} if name == "AlbertEncoder" else {}
    with torch.no_grad():
        found = model.eval()(**{key: torch.tensor(array).long() for key, array in inputs.items()}, **wanted)
    expected = load(config / name / "outputs.npz")
    for ours, theirs in outputs.items():
        value = found[theirs]
        array = np.stack([part.numpy() for part in value]) if isinstance(value, tuple) else value.numpy()
        findings.add(config.name, f"{name}: {ours}", array, expected[ours], DEVIATIONS.get(name, ""))


def compare_tokenizer(findings, folder: pathlib.Path, config: str) -> None:
    """Our tokenizer's folder, loaded by theirs.

    A literal special piece in a text is always one to them. AlbertTokenizer makes its own clean-up, which reads `` and
    '' as quotation marks and drops one mark more.
    """
    recorded = json.loads((folder / "ids.json").read_text(encoding="utf-8"))
    plain = {
        text: ids for text, ids in recorded["ids"].items() if not any(piece in text for piece in recorded["special"])
    }
    for name, own_clean_up in (("AlbertTokenizer", ("``", "''", "\u034f")), ("PreTrainedTokenizerFast", ())):
        texts = [text for text in plain if not any(part in text for part in own_clean_up)]
        theirs = getattr(transformers, name).from_pretrained(folder)
        found = theirs(texts, add_special_tokens=False)["input_ids"]
        differing = sum(ids != plain[text] for text, ids in zip(texts, found, strict=True))
        title = f"{name}, {folder.name}"
        findings.add_number(config, f"{title}: ids differ on so many of {len(texts)} lines", differing)
        types = theirs(["a film"], ["a book"])["token_type_ids"]
        findings.add_number(config, f"{title}: token types differ", int(types != [[0, 0, 0, 0, 1, 1, 1]]))


def main(root: pathlib.Path) -> None:
    """Compares every model of every config."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    findings = Findings(root, "transformers", f"transformers {transformers.__version__}, torch {torch.__version__}")
    inputs = load(root / "inputs.npz")
    for config in sorted(root.glob("*/albert_config.json")):
        for name in MODELS:
            if not (config.parent / name).is_dir():
                continue
            compare(findings, config.parent, name, inputs)
    for folder in ("tokenizer", "tokenizer with added tokens"):
        compare_tokenizer(findings, root / folder, "one group, tanh GELU")
    findings.write()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
