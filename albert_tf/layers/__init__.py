"""The layers of the models, for Keras' TensorFlow, JAX and PyTorch backends: the transformer block, and its parts."""

from albert_tf.layers.attention import AttentionBlock
from albert_tf.layers.embeddings import AlbertEmbeddings
from albert_tf.layers.feed_forward import FeedForwardBlock
from albert_tf.layers.heads import ClassificationHead, MaskedLMHead
from albert_tf.layers.kernels import mask_to_bias
from albert_tf.layers.qa_head import BeamAnswerHead
from albert_tf.layers.transformer_block import TransformerBlock

__all__ = [
    "AlbertEmbeddings",
    "AttentionBlock",
    "BeamAnswerHead",
    "ClassificationHead",
    "FeedForwardBlock",
    "MaskedLMHead",
    "TransformerBlock",
    "mask_to_bias",
]
