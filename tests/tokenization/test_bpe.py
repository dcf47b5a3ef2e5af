"""Proves that a `tokenizer.json` with BPE, as it is trained or made of a SentencePiece model, gives its own ids."""

import json

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from albert_tf.tokenization import AlbertTokenizer
from tests.conftest import ROOT

SPECIAL = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")


@pytest.fixture(scope="module")
def lines():
    files = sorted((ROOT / "training/sample_data").rglob("*.txt"))
    texts = (" ".join(line.split()) for file in files for line in file.read_text(encoding="utf-8").splitlines())
    return [text for text in texts if text][::5][:10_000]


@pytest.fixture(scope="module")
def trained(lines):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Lowercase()
    word_starts = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), word_starts])
    trainer = trainers.BpeTrainer(vocab_size=2000, special_tokens=list(SPECIAL), show_progress=False)
    tokenizer.train_from_iterator(lines[::4], trainer)
    return tokenizer


def load(folder, content):
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    config = {f"{name}_token": piece for name, piece in zip(("pad", "unk", "cls", "sep", "mask"), SPECIAL)}
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "do_lower_case": True}), encoding="utf-8")
    return AlbertTokenizer.from_pretrained(folder)


def test_ten_thousand_lines_have_its_ids(lines, trained, tmp_path):
    tokenizer = load(tmp_path, json.loads(trained.to_str()))
    expected = [encoding.ids for encoding in trained.encode_batch(lines, add_special_tokens=False)]
    found = [ids.tolist() for ids in tokenizer.encode_batch(lines)]
    different = [line for line, ids, others in zip(lines, found, expected) if ids != others]
    assert not different, (len(different), len(lines), different[:3])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fuse_unk": False}, "a BPE model with fuse_unk=false"),
        ({"ignore_merges": True}, "a BPE model with ignore_merges"),
        ({"continuing_subword_prefix": "##"}, "continuing_subword_prefix"),
        ({"merges": ["abc"]}, "is no tokenizer of the tokenizers library"),
        ({"vocab": {"<unk>": 0, "a": 2}}, "have gaps"),
    ],
)
def test_other_models_are_refused(trained, tmp_path, changes, message):
    content = json.loads(trained.to_str())
    content["model"] |= changes
    with pytest.raises(ValueError, match=message):
        load(tmp_path, content)
