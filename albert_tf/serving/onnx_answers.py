"""From text to answers with an ONNX model, in NumPy.

Letters: B rows, C labels or choices, L sequence, D hidden, M masks of a text, K best pieces, S entities of a text,
W windows, V vocabulary.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.data.finetuning.answers import predict_answers
from albert_tf.data.finetuning.choices import ChoiceQuestion, encode_choices
from albert_tf.data.finetuning.encoded import rows_by_length
from albert_tf.data.finetuning.questions import Question, QuestionWindows, encode_questions
from albert_tf.data.finetuning.tagged import OUTSIDE, EncodedTags, Entity, TaggedText, encode_tagged, predict_entities
from albert_tf.export.onnx_manifest import INPUTS, P_MASK, OnnxManifest
from albert_tf.serving.engine import Signature, TensorSpec
from albert_tf.tokenization import AlbertTokenizer

OUTPUTS = (
    *("logits", "sop_logits", "start_logits", "end_logits", "last_hidden_state", "pooler_output", "cls_logits"),
    *("start_top_log_probs", "start_top_index", "end_top_log_probs", "end_top_index"),
)
TOP = 10
# Tokens that are computed at once, at most. Outputs over the vocabulary are large.
LARGEST_BATCH, _PREDICTED_TOKENS_AT_ONCE = 8192, 1024
_STRING, _NUMBER = "string", "float32"
_TEXTS = {
    "multiple_choice": ("context", "choices"),
    "question_answering": ("question", "context"),
}


@dataclasses.dataclass(frozen=True)
class Answers:
    """The signatures of a model.

    Args:
        manifest: OnnxManifest.
        config: AlbertConfig.
        tokenizer: AlbertTokenizer.
        compute: the model, from int64 arrays, of which it takes those that it needs, to outputs by name.
        batch_size, max_tokens: maximum numbers of rows and of tokens that are computed at once.
    """

    manifest: OnnxManifest
    config: AlbertConfig
    tokenizer: AlbertTokenizer
    compute: Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]
    batch_size: int
    max_tokens: int

    def signatures(self) -> dict[str, Signature]:
        """The signatures by name."""
        axes = 3 if self.manifest.task == "multiple_choice" else 2
        sample = self.run("tokens", dict.fromkeys(INPUTS, np.ones((1,) * axes, np.int32)))
        ids = dict.fromkeys(INPUTS, TensorSpec("int32", (None,) * axes))
        texts = {name: TensorSpec(_STRING, (None,) * (1 + (name == "choices"))) for name in self._text_names()}
        numbers = {name: TensorSpec(str(array.dtype), (None,) * array.ndim) for name, array in sample.items()}
        found = {
            "serving_default": Signature(texts, self._answer_specs("pooler_output" in sample)),
            "tokens": Signature(ids, numbers),
            "tokenize": Signature(texts, ids),
        }
        if "sop_logits" in sample:
            pair = TensorSpec(_STRING, (None,))
            found["sentence_order"] = Signature(
                {"text": pair, "text_pair": pair}, {"in_order": TensorSpec(_NUMBER, (None,))}
            )
        if self.manifest.labels and self.manifest.problem != "regression":
            found["labels"] = Signature({}, {"labels": TensorSpec(_STRING, (len(self.manifest.labels),))})
        return found

    def run(self, signature: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Calls a signature with arrays by name; raises ValueError if a row cannot be answered."""
        if signature == "labels":
            return {"labels": _as_bytes(self.manifest.labels)}
        if signature == "tokens":
            return self._of_tokens(arrays)
        texts = {name: [_as_text(value) for value in array.reshape(-1)] for name, array in arrays.items()}
        if signature == "tokenize":
            return {name: array.astype(np.int32) for name, array in self._tokenize(texts).items()}
        if signature == "sentence_order":
            inputs = self.tokenizer(texts["text"], texts["text_pair"], max_length=self.manifest.max_length)
            return {"in_order": _softmax(np.stack(self._each(inputs, "sop_logits")))[:, 0]}
        return _ANSWERS[self.manifest.task](self, texts)

    def classify(self, texts: Mapping[str, list[str]]) -> dict[str, np.ndarray]:
        """Labels of texts."""
        logits = np.stack(self._each(self._tokenize(texts), "logits"))  # [B, C]
        if self.manifest.problem == "regression":
            return {"score": logits[:, 0]}
        is_multi = self.manifest.problem == "multi_label"
        probabilities = 1 / (1 + np.exp(-logits)) if is_multi else _softmax(logits)
        labels = _as_bytes([self.manifest.labels[index] for index in probabilities.argmax(axis=1)])
        return {"label": labels, "score": probabilities.max(axis=1), "probabilities": probabilities}

    def choose(self, texts: Mapping[str, list[str]]) -> dict[str, np.ndarray]:
        """The best choice of each row."""
        logits = np.stack(self._each(self._tokenize(texts), "logits"))  # [B, C]
        probabilities = _softmax(logits)
        choices = probabilities.argmax(axis=1).astype(np.int32)
        return {"choice": choices, "score": probabilities.max(axis=1), "probabilities": probabilities}

    def fill_masks(self, texts: Mapping[str, list[str]]) -> dict[str, np.ndarray]:
        """The best pieces for each [MASK]."""
        inputs = self._tokenize(texts)
        is_mask = inputs["input_ids"] == self.tokenizer.mask_token_id
        for row, text in enumerate(texts["text"]):
            if not is_mask[row].any() or is_mask[row].sum() < text.count("[MASK]"):
                raise ValueError(
                    f"Each text must contain [MASK], all of them within its first {self.manifest.max_length - 2} "
                    f"pieces. Received: {text!r}."
                )
        top = min(TOP, self.config.vocab_size)
        shape = (len(is_mask), int(is_mask.sum(axis=1).max()), top)
        pieces, probabilities = np.full(shape, b"", object), np.zeros(shape, np.float32)
        names = _as_bytes(self.tokenizer.pieces)

        def best_pieces(outputs: Mapping[str, np.ndarray], rows: np.ndarray) -> Iterator[None]:
            for row, logits in zip(rows.tolist(), outputs["logits"]):
                found = _softmax(logits[is_mask[row, : len(logits)]])  # [masks, V]
                order = np.argsort(-found, axis=1, kind="stable")[:, :top]
                pieces[row, : len(found)] = names[order]
                probabilities[row, : len(found)] = np.take_along_axis(found, order, axis=1)
                yield None

        self._map(inputs, best_pieces, min(self.max_tokens, _PREDICTED_TOKENS_AT_ONCE))
        return {"pieces": pieces, "probabilities": probabilities}

    def tag(self, texts: Mapping[str, list[str]]) -> dict[str, np.ndarray]:
        """The entities of each text."""
        encoded = self._encode_to_tag(texts)
        logits = self._each(encoded.encoded.batch(np.arange(len(encoded.text)), multiple=1), "logits")
        tokens = encoded.join([_softmax(row[1 : 1 + count]) for row, count in zip(logits, encoded.count)])
        labels, tag_words = self.manifest.labels, self.manifest.tags_words
        return _entity_arrays(
            [
                predict_entities(text, spans, probabilities, labels, tag_words)
                for text, spans, probabilities in zip(texts["text"], encoded.spans, tokens)
            ]
        )

    def answer(self, texts: Mapping[str, list[str]]) -> dict[str, np.ndarray]:
        """The answer to each question in its context."""
        answers = predict_answers(
            self._windows(texts),
            lambda batch: self.compute({name: batch[name].astype(np.int64) for name in (*INPUTS, P_MASK)}),
            threshold=self.manifest.no_answer_threshold,
            batch_size=self.batch_size,
            **self._options("max_answer_length"),
        )
        return {
            "answer": _as_bytes([answer.text for answer in answers]),
            **{name: np.array([getattr(answer, name) for answer in answers], np.int32) for name in ("start", "end")},
            **{
                name: np.array([getattr(answer, name) for answer in answers], np.float32)
                for name in ("score", "null_odds")
            },
        }

    def embed(self, texts: Mapping[str, list[str]]) -> dict[str, np.ndarray]:
        """The embedding of each text: the mean over its tokens."""
        inputs = self._tokenize(texts)
        rows = self._map(inputs, lambda outputs, _: [dict(zip(outputs, row)) for row in zip(*outputs.values())])
        sequences = np.zeros([*inputs["input_ids"].shape, self.config.hidden_size], np.float32)  # [B, L, D]
        for sequence, row, mask in zip(sequences, rows, inputs["attention_mask"]):
            length = int(mask.sum())
            sequence[:length] = row["last_hidden_state"][:length]
        embedding = sequences.sum(axis=1) / inputs["attention_mask"].sum(axis=1, keepdims=True)
        if self.manifest.normalize:
            embedding /= np.maximum(np.linalg.norm(embedding, axis=1, keepdims=True), 1e-12)
        found = {"sentence_embedding": embedding.astype(np.float32), "sequence_output": sequences}
        if "pooler_output" in rows[0]:
            found["pooled_output"] = np.stack([row["pooler_output"] for row in rows])
        return found

    def _of_tokens(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The model's outputs for ids, which are checked, because not all engines do."""
        config = self.config
        limits = dict(zip(INPUTS, (config.vocab_size, 2, config.type_vocab_size)))
        for name, limit in limits.items():
            array = arrays[name]
            if array.shape != arrays[INPUTS[0]].shape or array.min() < 0 or array.max() >= limit:
                raise ValueError(f"`{name}` must be integers from 0 to {limit - 1}, of the shape of `input_ids`.")
        if arrays[INPUTS[0]].shape[-1] > config.max_position_embeddings:
            raise ValueError(
                f"`input_ids` must have at most {config.max_position_embeddings} columns. Received: "
                f"shape={arrays[INPUTS[0]].shape}."
            )
        given = {**arrays, P_MASK: 1 - arrays["attention_mask"]}
        return self.compute({name: array.astype(np.int64) for name, array in given.items()})

    def _tokenize(self, texts: Mapping[str, list[str]]) -> dict[str, np.ndarray]:
        """The ids of texts, [B, L] or [B, C, L]; long passages and texts to tag are split into windows, [W, L]."""
        length = self.manifest.max_length
        if self.manifest.task == "question_answering":
            windows = self._windows(texts)
            return windows.encoded.batch(np.arange(len(windows)), multiple=1)
        if self.manifest.task == "token_classification":
            encoded = self._encode_to_tag(texts)
            return encoded.encoded.batch(np.arange(len(encoded.text)), multiple=1)
        if self.manifest.task == "multiple_choice":
            count = len(texts["choices"]) // len(texts["context"])
            rows = [tuple(texts["choices"][start : start + count]) for start in range(0, len(texts["choices"]), count)]
            questions = [ChoiceQuestion("", context, "_", row, -1) for context, row in zip(texts["context"], rows)]
            options = self._options("max_question_length")
            return encode_choices(self.tokenizer, questions, length, **options).batch(np.arange(len(rows)), multiple=1)
        first, *pairs = (texts[name] for name in self._text_names())
        has_masks = self.manifest.task in ("masked_lm", "pretraining")
        return self.tokenizer(first, *pairs, max_length=length, allow_special=has_masks)

    def _windows(self, texts: Mapping[str, list[str]]) -> QuestionWindows:
        pairs = zip(texts["question"], texts["context"])
        questions = [Question(str(row), question, context) for row, (question, context) in enumerate(pairs)]
        options = self._options("doc_stride", "max_question_length")
        return encode_questions(self.tokenizer, questions, self.manifest.max_length, **options)

    def _encode_to_tag(self, texts: Mapping[str, list[str]]) -> EncodedTags:
        given, options = [TaggedText("", text) for text in texts["text"]], self._options("doc_stride")
        return encode_tagged(self.tokenizer, given, (OUTSIDE,), self.manifest.max_length, **options)

    def _each(self, inputs: Mapping[str, np.ndarray], output: str) -> list[np.ndarray]:
        """An output of each row."""
        return self._map(inputs, lambda outputs, rows: list(outputs[output]))

    def _map(
        self,
        inputs: Mapping[str, np.ndarray],
        reduce: Callable[[Mapping[str, np.ndarray], np.ndarray], Any],
        max_tokens: int | None = None,
    ) -> list[Any]:
        """Computes rows of similar length together; returns what `reduce` makes of each row, in their order."""
        lengths = inputs["attention_mask"].sum(axis=-1)
        lengths = lengths.max(axis=-1) if lengths.ndim == 2 else lengths
        width = inputs["input_ids"][0].size // inputs["input_ids"].shape[-1]
        found: list[Any] = [None] * len(lengths)
        limit = (max_tokens or self.max_tokens) // width
        for rows in rows_by_length(lengths, self.batch_size, limit, longest_first=True):
            longest = int(lengths[rows[0]])
            batch = {name: inputs[name][rows, ..., :longest].astype(np.int64) for name in INPUTS}
            for row, result in zip(rows.tolist(), reduce(self.compute(batch), rows)):
                found[row] = result
        return found

    def _options(self, *names: str) -> dict[str, Any]:
        """Options that were recorded; for others the defaults hold."""
        return {name: value for name in names if (value := getattr(self.manifest, name)) is not None}

    def _text_names(self) -> tuple[str, ...]:
        default = ("text", "text_pair") if self.manifest.takes_pairs else ("text",)
        return _TEXTS.get(self.manifest.task, default)

    def _answer_specs(self, has_pooler: bool) -> dict[str, TensorSpec]:
        """The outputs of `serving_default`."""
        labels, width = len(self.manifest.labels), self.config.hidden_size
        if self.manifest.task == "sequence_classification" and self.manifest.problem == "regression":
            return {"score": TensorSpec(_NUMBER, (None,))}
        specs: dict[str, dict[str, tuple[str, tuple[int | None, ...]]]] = {
            "sequence_classification": {
                **{"label": (_STRING, (None,)), "score": (_NUMBER, (None,))},
                "probabilities": (_NUMBER, (None, labels)),
            },
            "multiple_choice": {
                **{"choice": ("int32", (None,)), "score": (_NUMBER, (None,))},
                "probabilities": (_NUMBER, (None, None)),
            },
            "token_classification": {
                **dict.fromkeys(("entity_label", "entity_text"), (_STRING, (None, None))),
                **dict.fromkeys(("entity_start", "entity_end"), ("int32", (None, None))),
                "entity_score": (_NUMBER, (None, None)),
            },
            "question_answering": {
                **{"answer": (_STRING, (None,)), "start": ("int32", (None,)), "end": ("int32", (None,))},
                **dict.fromkeys(("score", "null_odds"), (_NUMBER, (None,))),
            },
            "sentence_embedding": {
                "sentence_embedding": (_NUMBER, (None, width)),
                "sequence_output": (_NUMBER, (None, None, width)),
                **({"pooled_output": (_NUMBER, (None, width))} if has_pooler else {}),
            },
        }
        top = min(TOP, self.config.vocab_size)
        masks = {"pieces": (_STRING, (None, None, top)), "probabilities": (_NUMBER, (None, None, top))}
        return {name: TensorSpec(*spec) for name, spec in specs.get(self.manifest.task, masks).items()}


_ANSWERS: dict[str, Callable[[Answers, Mapping[str, list[str]]], dict[str, np.ndarray]]] = {
    "sequence_classification": Answers.classify,
    "token_classification": Answers.tag,
    "multiple_choice": Answers.choose,
    "question_answering": Answers.answer,
    "pretraining": Answers.fill_masks,
    "masked_lm": Answers.fill_masks,
    "sentence_embedding": Answers.embed,
}


def _entity_arrays(found: Sequence[Sequence[Entity]]) -> dict[str, np.ndarray]:
    """Entities of texts as arrays [B, S], padded."""
    shape = (len(found), max(map(len, found)))
    padded = {
        "entity_label": np.full(shape, b"", object),
        "entity_text": np.full(shape, b"", object),
        "entity_start": np.full(shape, -1, np.int32),
        "entity_end": np.full(shape, -1, np.int32),
        "entity_score": np.zeros(shape, np.float32),
    }
    for row, entities in enumerate(found):
        for column, entity in enumerate(entities):
            for array, value in zip(padded.values(), dataclasses.astuple(entity)):
                array[row, column] = _encoded(value) if isinstance(value, str) else value
    return padded


def _as_text(value: Any) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _as_bytes(texts: Sequence[str]) -> np.ndarray:
    """Strings as an object array of UTF-8 bytes, of whatever length they are."""
    found = np.empty(len(texts), object)
    found[:] = [_encoded(text) for text in texts]
    return found


def _softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
