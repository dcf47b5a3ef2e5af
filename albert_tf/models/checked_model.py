"""A `keras.Model` that checks its inputs and labels before Keras gets them."""

import contextlib
import functools
import inspect
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import keras

from albert_tf.keras_internals import OpenModel, is_evaluated_by_fit
from albert_tf.layers.base import not_quantizable
from albert_tf.models.inputs import TEXT_INPUTS, Fields, check_class_weight, check_inputs, check_labels, is_overridden
from albert_tf.models.preprocessor import Preprocessor
from albert_tf.models.task_settings import check_columns, record_columns
from albert_tf.models.texts import TextBatches, columns_of, in_batches, one_batch, with_ids


class _Checks:
    """Checks the data of one call of `fit`, `evaluate` or `predict`; batches of a generator as they are drawn."""

    def __init__(self, model: "CheckedModel", step: str, makes_batches: bool):
        self._model, self._labelled = model, step != "predict_step"
        self._is_checked = not is_overridden(model, step)  # a user's step may take anything
        self._error: ValueError | None = None
        self._scope = model.data_scope() if makes_batches else CheckedModel.data_scope(model)

    def __enter__(self):
        self._as_data = self._scope.__enter__()
        return self

    def __exit__(self, *exception):
        self._scope.__exit__(*exception)
        # TensorFlow wraps errors from a generator, and from a running step, in many lines.
        if reason := re.search(r"`gradient_accumulation_steps` must [^\]]*", str(exception[1])):
            self._error = ValueError(reason[0])
        if self._error is not None:
            raise self._error from None

    def data(self, x, y=None) -> tuple[Any, Any]:
        """Checks what can be checked now; returns inputs and labels for Keras."""
        if isinstance(x, TextBatches):
            return self._as_data(x), y
        if (columns := columns_of(self._model, x)) is not None:
            inputs: Any = one_batch(self._model, columns)
            x, y = inputs, with_ids(self._model, y)
        if not self._is_checked:
            return x, y
        if isinstance(x, types.GeneratorType):
            return self._checked_batches(x), y
        if isinstance(x, keras.utils.PyDataset):
            self._batch(x[0])
        elif hasattr(x, "element_spec"):
            if all(hasattr(spec, "dtype") for spec in keras.tree.flatten(x.element_spec)):
                self._batch(x.element_spec)
        elif isinstance(x, dict | list | tuple | str) or hasattr(x, "__array__") or keras.ops.is_tensor(x):
            return self._checked(x, y)
        return x, y

    def validation_data(self, data):
        """As `data`, for the argument `validation_data`."""
        if not isinstance(data, list | tuple):
            return self.data(data)[0]
        x, y, *weights = data
        return *self.data(x, y), *weights

    def _checked(self, x, y):
        x, sizes = check_inputs(self._model, x)
        return x, check_labels(self._model, y, sizes) if self._labelled else y

    def _batch(self, batch) -> tuple:
        x, y, weights = keras.utils.unpack_x_y_sample_weight(batch)
        x, y = self._checked(x, y)
        return (x,) if y is None else (x, y) if weights is None else (x, y, weights)

    def _checked_batches(self, batches) -> Iterator[tuple]:
        for batch in batches:
            try:
                checked = self._batch(batch)
            except ValueError as error:
                self._error = error
                raise
            yield checked


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
        check_class_weight(self, named.get("class_weight"))
        texts = columns_of(self, named.get("x"))
        if texts is not None and step != "train_step":
            check_columns(self, len(texts))
        if makes_batches and is_labelled:
            named["callbacks"] = self.callback_list(method.__name__, **named)
        if makes_batches:
            named = in_batches(self, named, method.__name__)
        data, labels = named.pop("x", None), named.pop("y", None)
        with _Checks(self, step, makes_batches) as checks:
            if named.get("validation_data") is not None:
                named["validation_data"] = checks.validation_data(named["validation_data"])
            x, y = checks.data(data, labels)
            if not is_labelled and isinstance(x, dict) and not any(map(len, x.values())):
                return keras.Model.predict_on_batch(self, x)  # `predict` of Keras fails without a batch
            if texts is not None and step == "train_step":
                record_columns(self, len(texts))
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

    def __init__(self, preprocessor: Preprocessor | None = None, **kwargs):
        super().__init__(autocast=False, **kwargs)  # half precision would round ids
        self.preprocessor = preprocessor
        self.__dict__["task_settings"] = {}  # which Keras would wrap

    def __reduce__(self):
        return *super().__reduce__(), {"preprocessor": self.preprocessor, "task_settings": dict(self.task_settings)}

    def data_scope(self) -> contextlib.AbstractContextManager:
        """The context in which Keras reads the data of `fit`, `evaluate` and `predict`; as what it is given batches."""
        return contextlib.nullcontext(lambda batches: batches)

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

    @property
    def input(self):
        """The inputs that the model needs, symbolic, as Keras has them; `keras.utils.plot_model` shows their shapes."""
        self._call_symbolically()
        return super().input

    @property
    def output(self):
        """The outputs for `input`, symbolic."""
        self._call_symbolically()
        return super().output

    def _call_symbolically(self) -> None:
        if not self.has_symbolic_call():
            fields = {name: field for name, field in self.input_fields.items() if not field.optional}
            shapes = {name: (None,) * (len(field.axes) - 1) for name, field in fields.items()}
            self({name: keras.Input(shape, dtype="int32", name=name) for name, shape in shapes.items()})

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
