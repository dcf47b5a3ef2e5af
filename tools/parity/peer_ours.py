"""Writes small models of ours with random weights, an input batch with padding, and what the models give for it.

    python tools/parity/peer_ours.py runs/parity/peers

For each config there is a folder, and in it one for each model: `config.json` and `model.safetensors` as
`save_pretrained` writes them, the variables by path in `variables.npz`, the outputs in `outputs.npz`. The programs
`peer_*.py` read these in environments of their own. `tokenizer` holds the English tokenizer and its ids.

Letters: B batch, C choices, L sequence.
"""

import json
import lzma
import pathlib
import random
import re
import sys

import keras
import numpy as np

import albert_tf
from albert_tf import AlbertConfig

LENGTHS = (12, 7, 4, 1)
LINES = pathlib.Path(__file__).parents[2] / "tests" / "golden" / "T1_tokenize" / "lines.jsonl.xz"
CONFIG = AlbertConfig(
    vocab_size=120,
    embedding_size=16,
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=32,
)
CONFIGS = {
    "one group, tanh GELU": CONFIG,
    "2 groups of 2, tanh GELU": CONFIG.replace(num_hidden_layers=4, num_hidden_groups=2, inner_group_num=2),
    "2 groups of 2, erf GELU": CONFIG.replace(
        num_hidden_layers=4, num_hidden_groups=2, inner_group_num=2, hidden_act="gelu"
    ),
}
TOKENS = ["[E1]", "[/E1]", "[E1", "covid", "New York", "Café", "myocardial infarction", "infarction", "😀", "▁foo"]
EXACT_TOKENS = ["US", "NaN"]
MODELS = {
    "AlbertEncoder": {},
    "AlbertForPreTraining": {},
    "AlbertForMaskedLM": {},
    "AlbertForSequenceClassification": {"num_labels": 3},
    "AlbertForTokenClassification": {"num_labels": 5},
    "AlbertForQuestionAnswering": {"mask_padding": False},
    "AlbertForMultipleChoice": {},
}


def make_inputs() -> dict[str, np.ndarray]:
    """One batch [B, L] whose rows have the lengths above; padding holds ids too, so that a leak would show."""
    generator, longest = np.random.default_rng(0), max(LENGTHS)
    positions, lengths = np.arange(longest), np.array(LENGTHS)[:, None]
    return {
        "input_ids": generator.integers(0, CONFIG.vocab_size, (len(LENGTHS), longest)).astype("int32"),
        "attention_mask": (positions < lengths).astype("int32"),
        "token_type_ids": (positions >= lengths // 2).astype("int32"),
    }


def make_model(name: str, config: AlbertConfig):
    """The model, every variable of it far from its initial value."""
    model, generator = getattr(albert_tf, name)(config, **MODELS[name]), np.random.default_rng(1)
    for path, variable in model.variables_by_path().items():
        variable.assign(generator.normal(1.0 if path.endswith("gamma") else 0.0, 0.1, variable.shape))
    return model


def outputs_of(model, inputs) -> dict[str, np.ndarray]:
    """All outputs by name; tuples are stacked."""
    if isinstance(model, albert_tf.AlbertForMultipleChoice):
        inputs = {name: array.reshape(2, 2, -1) for name, array in inputs.items()}  # [B, C, L]
    settings = {}
    if isinstance(model, albert_tf.AlbertEncoder):
        settings = {"output_hidden_states": True, "output_attentions": True}
    outputs = model(inputs, **settings)
    return {
        name: np.stack([keras.ops.convert_to_numpy(part) for part in value])
        if isinstance(value, tuple)
        else keras.ops.convert_to_numpy(value)
        for name, value in outputs.items()
    }


def write(folder: pathlib.Path, model, inputs) -> None:
    """One model's folder."""
    model.save_pretrained(folder)
    arrays = {path: keras.ops.convert_to_numpy(variable) for path, variable in model.variables_by_path().items()}
    np.savez(folder / "variables.npz", **arrays)
    np.savez(folder / "outputs.npz", **outputs_of(model, inputs))


def with_tokens(text: str, generator: random.Random) -> str:
    """The text with one to four tokens, some of them in other spellings, and sometimes white space around them."""
    for _ in range(generator.randint(1, 4)):
        place, spaces = generator.randint(0, len(text)), (generator.choice(["", "", " "]) for _ in range(2))
        token = generator.choice([*TOKENS, *EXACT_TOKENS, "COVID", "us", "CAFE\u0301", "new york", "[e1]", "new  york"])
        text = text[:place] + next(spaces) + token + next(spaces) + text[place:]
    return text


def write_tokenizer(folder: pathlib.Path, added: bool = False) -> None:
    """The English tokenizer, and its ids of the lines that the reference's ids are recorded of.

    With `added` it has added tokens, and every line is there as it is and with tokens at random positions.
    """
    tokenizer = albert_tf.AlbertTokenizer.english()
    with lzma.open(LINES, "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    if added:
        tokenizer.add_tokens(TOKENS)
        tokenizer.add_tokens(EXACT_TOKENS, normalized=False)
        # Where a run of one character is cut, splits of equal scores differ: "!" + "!!!" and "!!!" + "!". Where a
        # number is, so does the digit-comma rule, which their file has only in scores: "21,4", also without tokens.
        mixed = [text for text in texts if not re.search(r"(.)\1{7}|\d,\d", text)]
        texts += [with_tokens(text, random.Random(index)) for index, text in enumerate(mixed)]
    tokenizer.save_pretrained(folder)
    ids = {text: row.tolist() for text, row in zip(texts, tokenizer.encode_batch(texts))}
    (folder / "ids.json").write_text(json.dumps({"ids": ids, "special": tokenizer.pieces[:5]}), encoding="utf-8")


def main(root: pathlib.Path) -> None:
    """Writes everything."""
    write_tokenizer(root / "tokenizer")
    write_tokenizer(root / "tokenizer with added tokens", added=True)
    inputs = make_inputs()
    for title, config in CONFIGS.items():
        for name in MODELS:
            write(root / title / name, make_model(name, config), inputs)
        if config.hidden_act == "gelu_new":
            # KerasHub's masked-LM head has an epsilon of its own.
            kerashub = config.replace(masked_lm_layer_norm_eps=1e-5)
            write(root / title / "AlbertForMaskedLM, epsilon 1e-5", make_model("AlbertForMaskedLM", kerashub), inputs)
            half = make_model("AlbertForMaskedLM", config.replace(vocab_size=config.vocab_size // 2))
            folder = root / title / "AlbertForMaskedLM, resized"
            half.save_pretrained(folder)
            write(folder, type(half).from_pretrained(folder, vocab_size=config.vocab_size), inputs)
        (root / title / "albert_config.json").write_text(json.dumps(config.to_dict()))
    np.savez(root / "inputs.npz", **inputs)
    print(f"albert_tf: {len(CONFIGS)} configs, {len(MODELS)} models each")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
