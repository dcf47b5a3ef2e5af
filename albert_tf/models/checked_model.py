"""A `keras.Model` that checks its inputs and labels before Keras gets them."""

import functools
import inspect
import re
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from albert_tf.data.finetuning.text_counts import TextCounts, count_texts, report
from albert_tf.keras_internals import OpenModel, is_evaluated_by_fit
from albert_tf.layers.base import not_quantizable
from albert_tf.models.inputs import (
    TEXT_INPUTS,
    Fields,
    as_arrays,
    check_inputs,
    check_labels,
    class_factors,
    class_weights_by_id,
    has_several_labels,
    is_overridden,
)
from albert_tf.models.texts import (
    EncodedBatches,
    TextBatches,
    columns_of,
    in_batches,
    is_table,
    not_texts,
    one_batch,
    see_columns,
    texts_of,
    with_ids,
)

if TYPE_CHECKING:
    from albert_tf.models.preprocessor import Preprocessor


class _Checks:
    """Checks the data of one call of `fit`, `evaluate` or `predict`; batches of a generator as they are drawn.

    Texts in datasets become inputs as they are drawn; the call says at its end how many were cut or empty.
    """

    def __init__(self, model: "CheckedModel", step: str):
        self._model, self._labelled = model, step != "predict_step"
        self._is_training = step == "train_step"
        self._is_checked = not is_overridden(model, step)  # a user's step may take anything
        self._error: ValueError | None = None
        self._counts = TextCounts()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        # TensorFlow wraps errors from a generator, and from a running step, in many lines.
        if reason := re.search(r"`gradient_accumulation_steps` must [^\]]*", str(exception[1])):
            self._error = ValueError(reason[0])
        if self._error is not None:
            raise self._error from None
        report(self._counts)

    def data(self, x, y=None, weights=None, class_weight=None, shuffle=False) -> tuple[Any, Any, Any]:
        """Checks what can be checked now; returns inputs, labels and weights for Keras.

        Args:
            x, y, weights: the data, as in `fit`.
            class_weight: None, or weights of classes that are made to those of arrays.
            shuffle: whether batches of a PyDataset come in another order in each epoch.
        """
        if isinstance(x, dict | list | tuple | str) or hasattr(x, "__array__") or keras.ops.is_tensor(x):
            x, y, weights = self._batch((x, y, weights))
            return x, y, weights if class_weight is None else class_factors(self._model, y, class_weight)
        if class_weight is not None:
            raise _without_class_weight(class_weight, f"a {type(x).__name__}")
        if isinstance(x, TextBatches):
            x = self._model.data_of(x)
        elif isinstance(x, types.GeneratorType):
            check = self._noted(self._drawn)
            x = (check(batch) for batch in x)
        elif isinstance(x, keras.utils.PyDataset):
            if self._columns(x[0]) is None:
                self._batch(x[0])
            else:
                x = self._model.data_of(EncodedBatches(x, self._noted(self._packed), shuffle))
                self._counts = TextCounts()  # without the first batch, which has shown the types
        elif hasattr(x, "element_spec") and all(hasattr(spec, "dtype") for spec in keras.tree.flatten(x.element_spec)):
            x = self._dataset(x)
        return x, y, weights

    def validation_data(self, data):
        """As `data`, for the argument `validation_data`."""
        if not isinstance(data, list | tuple):
            return self.data(data)[0]
        x, y, weights = self.data(*data)
        return (x, y) if weights is None else (x, y, weights)

    def _columns(self, batch) -> list[list[Any]] | None:
        """The texts of a batch."""
        return columns_of(self._model, _unpacked(batch)[0])

    def _batch(self, batch) -> tuple[Any, Any, Any]:
        x, y, weights = _unpacked(batch)
        if (columns := columns_of(self._model, x)) is not None:
            x, y = self._inputs(*columns), self._ids(y)
        elif is_table(y):
            y = self._ids(y)
        if self._is_checked:
            x, sizes = check_inputs(self._model, x)
            y = check_labels(self._model, y, sizes) if self._labelled else y
        return x, y, as_arrays(weights)

    def _packed(self, batch) -> tuple:
        x, y, weights = self._batch(batch)
        return (x,) if y is None else (x, y) if weights is None else (x, y, weights)

    def _drawn(self, batch) -> tuple:
        if self._columns(batch) is not None:  # Keras would take the length of the first batches for that of all
            raise not_texts(self._model, batch, "a generator; pass a list or a PyDataset")
        return self._packed(batch)

    def _inputs(self, *columns) -> Any:
        see_columns(self._model, len(columns), self._is_training)
        with count_texts() as counts:
            inputs = one_batch(self._model, [list(column) for column in columns])
        self._counts.add(counts)
        return inputs

    def _ids(self, y):
        """Labels with ids in the place of names."""
        y = with_ids(self._model, y)
        is_object = isinstance(y, np.ndarray) and y.dtype.kind == "O"
        if texts := np.ravel(y).tolist() if is_object else texts_of(y):
            raise ValueError(
                f"Labels must be numbers, or names of the model's labels. Received: {texts[0]!r}; in a dataset, pairs "
                "of texts without labels are ((texts, pairs),)."
            )
        return y

    def _dataset(self, dataset):
        """Checks the spec of a `tf.data.Dataset`; makes inputs of texts."""
        spec = keras.tree.map_structure(  # strings as arrays without rows
            lambda spec: np.empty([size or 0 for size in spec.shape], object) if spec.dtype == "string" else spec,
            dataset.element_spec,
        )
        if self._columns(spec) is None:
            self._batch(dataset.element_spec)
            return dataset
        from albert_tf.data.encoded_dataset import encoded_dataset

        y = _unpacked(spec)[1]
        if self._labelled and not isinstance(y, np.ndarray):
            check_labels(self._model, y, {})
        width = [self._model.num_labels] if getattr(self._model, "problem", "") == "multi_label" else []
        return encoded_dataset(dataset, self._noted(self._inputs), self._noted(self._ids), list(TEXT_INPUTS), width)

    def _noted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose ValueErrors this call raises, as TensorFlow wraps those from its threads."""

        def call(*args):
            try:
                return function(*args)
            except ValueError as error:
                self._error = error
                raise

        return call


def _unpacked(batch) -> tuple[Any, Any, Any]:
    """Inputs, labels and weights of a batch; a list of strings is one of texts alone."""
    is_texts = isinstance(batch, list) and any(isinstance(text, str) for text in batch)
    return keras.utils.unpack_x_y_sample_weight((batch,) if is_texts else batch)


def _without_class_weight(class_weight, received: str) -> ValueError:
    return ValueError(
        f"`class_weight` of several labels must go with arrays or texts, without `validation_split`. Received: "
        f"class_weight={class_weight} and {received}; pass `validation_data`, or `sample_weight`: one per row, or one "
        "per label."
    )


def _with_checked_data(method: Callable[..., Any], step: str) -> Callable[..., Any]:
    """A method of `keras.Model` that checks its data first, and makes batches of texts."""
    signature = inspect.signature(method)
    makes_batches, is_labelled = "batch_size" in signature.parameters, "y" in signature.parameters

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        if is_evaluated_by_fit(kwargs):  # which has checked its data
            return method(self, *args, **kwargs)
        named = signature.bind(self, *args, **kwargs).arguments
        others = named.pop("kwargs", {})
        named = {name: value for name, value in {**named, **others}.items() if name != "self"}
        if class_weight := class_weights_by_id(self, named.pop("class_weight", None), named.get("sample_weight")):
            named["class_weight"] = class_weight
        texts = columns_of(self, named.get("x"))
        if texts is not None and step != "train_step":
            see_columns(self, len(texts), is_training=False)
        if makes_batches and is_labelled:
            named["callbacks"] = self.callback_list(method.__name__, **named)
        if makes_batches:
            named = in_batches(self, named, method.__name__)
        data = named.pop("x", None)
        rest = [named.pop(name, None) for name in ("y", "sample_weight")]
        if has_several_labels(self) and (class_weight := named.pop("class_weight", None)):
            if named.get("validation_split"):
                raise _without_class_weight(class_weight, f"validation_split={named['validation_split']}")
            rest.append(class_weight)
        with _Checks(self, step) as checks:
            if named.get("validation_data") is not None:
                named["validation_data"] = checks.validation_data(named["validation_data"])
            is_fit = method.__name__ == "fit"
            x, y, weights = checks.data(data, *rest, shuffle=is_fit and named.get("shuffle", True))
            if weights is not None:
                named["sample_weight"] = weights
            if is_fit and x is not data and isinstance(data, keras.utils.PyDataset):
                named["shuffle"] = False  # it is done by then
            if not is_labelled and isinstance(x, dict) and not any(map(len, x.values())):
                return keras.Model.predict_on_batch(self, x)  # `predict` of Keras fails without a batch
            if texts is not None and step == "train_step":
                see_columns(self, len(texts), is_training=True)
            outputs = method(self, x, *([y] if is_labelled else []), **named)
        return outputs if is_labelled or not isinstance(data, TextBatches) else data.of_texts(outputs, self)

    return call


class CheckedModel(OpenModel):
    """A model that validates inputs and labels before anything is traced.

    Attributes:
        input_fields: the inputs by name. A subclass with further inputs adds them here.
        preprocessor: Preprocessor, with which `fit`, `evaluate`, `predict` and the methods for one batch take texts; or
            None. `.keras` files and `keras.models.clone_model` leave it out.
        task_settings: dict, entries of the `model.json` in a folder: `pair_column`, by which `fit` tells whether it got
            pairs of texts, and what `finetune` chose, such as a `threshold`. `save_pretrained` writes them.
        max_columns: the number of texts that a row can have; 0 if the model takes no texts.
        reads_windows: whether `predict` can read a long text in several windows.
    """

    input_fields: Fields = {}
    max_columns = 0
    reads_windows = False

    def __init__(self, preprocessor: "Preprocessor | None" = None, **kwargs):
        super().__init__(autocast=False, **kwargs)  # half precision would round ids
        self.preprocessor = preprocessor
        self.__dict__["task_settings"] = {}  # which Keras would wrap

    def __reduce__(self):
        return *super().__reduce__(), {"preprocessor": self.preprocessor, "task_settings": dict(self.task_settings)}

    def data_of(self, batches: keras.utils.PyDataset) -> Any:
        """What Keras is given for batches of texts."""
        return batches

    def callback_list(self, method: str, callbacks=None, verbose="auto", epochs=1, **_) -> Any:
        """What `fit` or `evaluate` gets as callbacks, by its arguments."""
        return callbacks

    def label_fields(self) -> Fields:
        """The labels of the model's own loss by name; `"labels"` alone stands for a single array."""
        return {}

    def __call__(self, *args, **kwargs):
        if args:
            return super().__call__(check_inputs(self, args[0])[0], *args[1:], **kwargs)
        if "inputs" in kwargs:
            kwargs = {**kwargs, "inputs": check_inputs(self, kwargs["inputs"])[0]}
        return super().__call__(**kwargs)

    def stateless_call(self, trainable_variables, non_trainable_variables, inputs, *args, **kwargs):
        """As `keras.Model.stateless_call`."""
        inputs, _ = check_inputs(self, inputs)
        return super().stateless_call(trainable_variables, non_trainable_variables, inputs, *args, **kwargs)

    fit = _with_checked_data(keras.Model.fit, "train_step")
    evaluate = _with_checked_data(keras.Model.evaluate, "test_step")
    predict = _with_checked_data(keras.Model.predict, "predict_step")
    train_on_batch = _with_checked_data(keras.Model.train_on_batch, "train_step")
    test_on_batch = _with_checked_data(keras.Model.test_on_batch, "test_step")
    predict_on_batch = _with_checked_data(keras.Model.predict_on_batch, "predict_step")

    def quantize(self, mode=None, config=None, **kwargs):
        """Not supported, because blocks read their kernels as floats; raises ValueError."""
        raise not_quantizable(f"quantize(mode={mode!r})")

    @functools.wraps(keras.Model.export)
    def export(self, filepath, format="tf_saved_model", verbose=None, input_signature=None, **kwargs):
        if input_signature is None:
            fields = {name: self.input_fields[name] for name in TEXT_INPUTS}
            ranks = {name: len(field.axes) - len(field.optional_axis) for name, field in fields.items()}
            input_signature = [
                {name: keras.InputSpec(shape=(None,) * rank, dtype="int32", name=name) for name, rank in ranks.items()}
            ]
        return super().export(filepath, format, verbose, input_signature, **kwargs)
