"""Trains Hugging Face transformers on the batches that finetune_ours.py recorded.

    .venv-parity-transformers/bin/python tests/parity/finetune_theirs.py FOLDER

Weights, head, batches, AdamW, clipping and learning rates are the same as in `albert-tf finetune`; FOLDER/theirs is for
`albert-tf evaluate`.
"""

import json
import pathlib
import shutil
import sys
import time

import numpy as np
import torch
import transformers


def main() -> None:
    """Trains, and prints seconds and the mean loss of the last tenth."""
    folder = pathlib.Path(sys.argv[1])
    options = json.loads((folder / "start/recipe.json").read_text())
    torch.manual_seed(options["seed"])
    kind = getattr(transformers, json.loads((folder / "start/config.json").read_text())["architectures"][0])
    model = kind.from_pretrained(folder / "start").train()
    if model.config.embedding_size == model.config.hidden_size:
        # Such a model has no projection, in the reference and ours; theirs is the identity and stays it.
        model.base_model.encoder.embedding_hidden_mapping_in.requires_grad_(False)
    with np.load(folder / "batches.npz") as file:
        steps, arrays = int(file["steps"]), {name: torch.from_numpy(file[name]) for name in file.files}
    batches = [{} for _ in range(steps)]
    for name, array in arrays.items():
        step, _, field = name.partition("/")
        if field in ("input_ids", "attention_mask", "token_type_ids", "labels", "start_positions", "end_positions"):
            batches[int(step)][field] = array if array.is_floating_point() else array.long()

    is_excluded = {
        name: name.endswith("bias") or "LayerNorm" in name or "layer_norm" in name
        for name, _ in model.named_parameters()
    }
    groups = [
        {
            "params": [value for name, value in model.named_parameters() if is_excluded[name] is excluded],
            "weight_decay": decay,
        }
        for excluded, decay in ((False, options["weight_decay"]), (True, 0.0))
    ]
    optimizer = torch.optim.AdamW(groups, options["learning_rate"], eps=1e-6)
    warmup = round(options["warmup_proportion"] * steps)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, warmup, steps)
    losses, begun = [], time.monotonic()
    for batch in batches:
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    seconds = time.monotonic() - begun
    model.save_pretrained(folder / "theirs")
    for file in (folder / "start").iterdir():
        if not (folder / "theirs" / file.name).exists():
            shutil.copy(file, folder / "theirs")
    print(f"{steps} steps in {seconds:.1f} s, loss {np.mean(losses[-steps // 10 :]):.4f}")


if __name__ == "__main__":
    main()
