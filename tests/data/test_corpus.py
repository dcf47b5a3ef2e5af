"""Words are masked whole, whichever way the pieces of a vocabulary show where words begin."""

import numpy as np
import pytest

from albert_tf.data.corpus import Vocabulary
from albert_tf.data.documents import Document
from albert_tf.data.options import ExampleOptions
from albert_tf.data.preparation.tokenized_cache import tokenize_documents
from albert_tf.data.pretraining.examples import make_examples
from albert_tf.data.pretraining.pairs import make_pairs
from albert_tf.tokenization import AlbertTokenizer

# Without punctuation, a word is what stands between two spaces.
SENTENCES = ("baker makes bread", "the bakers make breads now", "makers bake", "a bread makes the baker") * 3
LETTERS = "abdehkmnorstw"
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VOCABULARIES = {
    "wordpiece": (*SPECIAL, "bake", "make", "bread", *LETTERS, *("##" + letter for letter in LETTERS)),
    "word_end": (*SPECIAL[1:], "bake", "make", "r_", "bread", "s_", "rs_", "_", *LETTERS),
    "english": None,
}


@pytest.fixture(params=VOCABULARIES)
def tokenizer(request, tmp_path):
    pieces = VOCABULARIES[request.param]
    if pieces is None:
        return AlbertTokenizer.english()
    (tmp_path / "vocab.txt").write_text("\n".join(pieces))
    return AlbertTokenizer.from_pretrained(tmp_path, scheme=request.param)


def test_words_begin_behind_spaces(tokenizer):
    vocabulary = Vocabulary.of(tokenizer)
    for sentence in SENTENCES:
        inputs = tokenizer([sentence], return_offsets=True)
        starts, spans = vocabulary.word_starts(inputs["input_ids"])[0], inputs["offsets"][0]
        words = np.cumsum([0] + [character == " " for character in sentence])
        of_word = words[np.maximum(spans[1:-1, 1] - 1, 0)]
        assert starts[1:-1].tolist() == [True, *(of_word[1:] != of_word[:-1])]
        assert len(of_word) > sentence.count(" ") + 1 or tokenizer.vocab_size == 30_000


def test_masks_cover_whole_words(tokenizer):
    vocabulary, options = Vocabulary.of(tokenizer), ExampleOptions(max_seq_length=48, masked_lm_prob=0.4, ngram=2)
    documents = tokenize_documents([Document(SENTENCES, 1)], tokenizer, options.max_seq_length - 3)
    examples = make_examples(documents, make_pairs(documents, np.arange(20), options), options, vocabulary)
    hidden = np.zeros(examples.input_ids.shape, bool)
    rows, slots = np.nonzero(examples.masked_lm_weights)
    hidden[rows, examples.masked_lm_positions[rows, slots]] = True
    ids = examples.input_ids.copy()
    ids[hidden] = examples.masked_lm_ids[rows, slots]
    special = np.isin(ids, [vocabulary.cls_token_id, vocabulary.sep_token_id])
    inside = (examples.attention_mask == 1) & ~special & ~vocabulary.word_starts(ids)
    inside[:, 1:] &= ~special[:, :-1]
    rows, places = np.nonzero(inside)
    assert hidden.any()
    assert not hidden.all()
    assert (hidden[rows, places] == hidden[rows, places - 1]).all()
