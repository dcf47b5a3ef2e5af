"""Proves that weights are loaded and saved wherever a model was made, and that none is lost on the way out."""

import keras
import numpy as np
import pytest

from albert_tf import AlbertEncoder, AlbertForPreTraining, AlbertForSequenceClassification, checkpoints
from albert_tf.optimizers import Lamb

from .small import CONFIG, make_inputs

INPUTS = make_inputs()


@pytest.fixture(scope="module")
def pretrained():
    return AlbertForPreTraining(CONFIG.replace(initializer_range=0.2))


@pytest.fixture(scope="module")
def folder(pretrained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrained")
    pretrained.save_pretrained(folder)
    return folder


def pooled(encoder):
    return np.asarray(encoder(INPUTS)["pooled_output"])


def logits(model):
    return np.asarray(model(INPUTS)["logits"])


# === Name scopes ===


class MadeInBuild(keras.Model):
    """Keras opens a name scope around every `build`."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def build(self, input_shape):
        self.classifier = AlbertForSequenceClassification.from_pretrained(self.folder, num_labels=2, new_head=True)
        self.built = True

    def call(self, inputs):
        return self.classifier(inputs)["logits"]


def test_a_model_made_in_build_has_its_weights(folder, pretrained):
    outer = MadeInBuild(folder)
    outer(INPUTS)
    np.testing.assert_array_equal(pooled(outer.classifier.encoder), pooled(pretrained.encoder))


def test_loading_and_saving_in_a_name_scope(folder, pretrained, tmp_path):
    with keras.name_scope("student"):
        model = AlbertForSequenceClassification.from_pretrained(folder, num_labels=2, new_head=True)
        again = AlbertForPreTraining.from_pretrained(folder)
    assert all(variable.path.startswith("student/") for variable in model.weights)
    for found, expected in zip(again.get_weights(), pretrained.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)
    model.save_pretrained(tmp_path / "hf")
    checkpoints.save_google(model, tmp_path / "google" / "model.ckpt")
    for saved in (tmp_path / "hf", tmp_path / "google"):
        np.testing.assert_array_equal(logits(AlbertForSequenceClassification.from_pretrained(saved)), logits(model))


class Twins(keras.Model):
    """Two encoders and a layer of its own."""

    def __init__(self):
        super().__init__()
        self.student, self.teacher = AlbertEncoder(CONFIG, name="student"), AlbertEncoder(CONFIG, name="teacher")
        self.score = keras.layers.Dense(1)

    def call(self, inputs, training=False):
        outputs = (encoder(inputs, training=training) for encoder in (self.student, self.teacher))
        return self.score(keras.ops.concatenate([output["pooled_output"] for output in outputs], axis=-1))


def test_two_encoders_are_told_apart(tmp_path):
    twins = Twins()
    before = [[np.array(v) for v in encoder.weights] for encoder in (twins.student, twins.teacher)]
    optimizer = Lamb(0.01, learning_rate_rules=[("teacher/", 0.0), (".*", 1.0)], keep_trust_ratios=True)
    twins.compile(optimizer, "mse", run_eagerly=True)
    twins.fit(INPUTS, np.ones((5, 1)), batch_size=5, verbose=0)
    # Of each encoder 3 tables and 8 kernels, and the kernel of the score.
    assert len(optimizer.trust_ratios()) == 2 * 11 + 1
    moved = [
        max(np.max(np.abs(value - old)) for value, old in zip(encoder.get_weights(), values, strict=True))
        for encoder, values in zip((twins.student, twins.teacher), before, strict=True)
    ]
    assert moved[0] > 0 == moved[1]
    twins.student.save_pretrained(tmp_path)
    np.testing.assert_array_equal(pooled(AlbertEncoder.from_pretrained(tmp_path)), pooled(twins.student))


def test_trust_ratios_of_one_path_are_refused():
    models = [AlbertForPreTraining(CONFIG) for _ in range(2)]
    optimizer = Lamb(0.01, keep_trust_ratios=True)
    with pytest.raises(ValueError, match=r"two variables at 'encoder/embeddings/word_embeddings'; create their models"):
        optimizer.build([variable for model in models for variable in model.trainable_variables])


# === Layers of one's own ===


class WithLayer(AlbertForSequenceClassification):
    """A classifier with a layer that no format knows."""

    def __init__(self, *args, layer_name="extra", **kwargs):
        super().__init__(*args, **kwargs)
        self.extra = keras.layers.Dense(3, name=layer_name)
        self.extra.build((None, CONFIG.hidden_size))


def test_saving_refuses_what_it_would_lose(tmp_path):
    model = WithLayer(CONFIG, num_labels=2)
    with pytest.raises(ValueError, match=r"Hugging Face format has no name for extra/bias, extra/kernel, which would"):
        model.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"Google format has no name for extra/bias, extra/kernel, which would be"):
        checkpoints.save_google(model, tmp_path / "model.ckpt")
    assert list(tmp_path.iterdir()) == []


def test_a_layer_of_ones_own_is_no_new_head(folder, pretrained):
    with pytest.raises(ValueError, match=r"missing extra/kernel, extra/bias; `extra` is a custom layer") as error:
        WithLayer.from_pretrained(folder, num_labels=2, new_head=True)
    assert "model.encoder.set_weights(AlbertEncoder.from_pretrained(path).get_weights())" in str(error.value)
    model = WithLayer(CONFIG, num_labels=2)
    model.encoder.set_weights(AlbertEncoder.from_pretrained(folder).get_weights())
    np.testing.assert_array_equal(pooled(model.encoder), pooled(pretrained.encoder))


def test_two_layers_of_one_name_are_refused():
    with pytest.raises(ValueError, match=r"Received: two variables at 'classifier/bias'; pass another `name`"):
        WithLayer(CONFIG, num_labels=2, layer_name="classifier").variables_by_path()


# === LoRA and quantization ===


def test_lora_is_merged_wherever_a_model_is_saved(tmp_path):
    keras.utils.set_random_seed(1)
    model = AlbertForSequenceClassification(CONFIG.replace(initializer_range=0.2), num_labels=2)
    before = logits(model)
    for layer in (model.encoder.attention_blocks[0][0].query, model.encoder.ffn_blocks[0][0].intermediate):
        layer.enable_lora(2)
        layer.lora_kernel_b.assign(np.ones(layer.lora_kernel_b.shape))
    model.encoder.pooler.enable_lora(2, lora_alpha=3)
    model.encoder.pooler.lora_kernel_b.assign(np.ones((2, CONFIG.hidden_size)))
    trained = logits(model)
    assert np.max(np.abs(trained - before)) > 0.1
    model.save_pretrained(tmp_path / "hf")
    checkpoints.save_google(model, tmp_path / "google" / "model.ckpt")
    model.save(tmp_path / "model.keras")
    for saved in ("hf", "google"):
        again = AlbertForSequenceClassification.from_pretrained(tmp_path / saved)
        np.testing.assert_allclose(logits(again), trained, atol=1e-6, rtol=0, err_msg=saved)
    np.testing.assert_allclose(logits(keras.saving.load_model(tmp_path / "model.keras")), trained, atol=1e-6, rtol=0)


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method:UserWarning")  # Keras' own, of others
def test_quantization_is_refused():
    model = AlbertForSequenceClassification(CONFIG, num_labels=2)
    ids = keras.Input((None,), dtype="int32")
    outer = keras.Model(ids, model({"input_ids": ids})["logits"])
    before = logits(model)
    for quantized in (model, outer):
        with pytest.raises(ValueError, match=r"do not support quantization by Keras\. Received: quantize\(mode='int8'"):
            quantized.quantize("int8")
    np.testing.assert_array_equal(logits(model), before)
    with pytest.raises(ValueError, match=r"do not support quantization by Keras\. Received: dtype='int8_from_float32'"):
        AlbertEncoder(CONFIG, dtype="int8_from_float32")
