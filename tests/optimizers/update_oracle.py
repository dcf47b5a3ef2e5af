"""The published update rules in float64 NumPy, written from their formulas and sharing no code with the library."""

import numpy as np


def clip_by_global_norm(gradients, limit):
    """Gradients scaled so that their common norm is at most `limit`."""
    norm = np.sqrt(sum(np.sum(np.square(g)) for g in gradients))
    return [g * (limit / max(norm, limit)) for g in gradients]


class Oracle:
    """One variable under Adam with decay inside the step and, where `adapt`, the trust ratio."""

    def __init__(self, value, decay, adapt, bias_correction, beta_1=0.9, beta_2=0.999, epsilon=1e-6):
        self.value = np.asarray(value, "float64")
        self.m, self.v, self.step = np.zeros_like(self.value), np.zeros_like(self.value), 0
        self.decay, self.adapt, self.bias_correction = decay, adapt, bias_correction
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def update(self, gradient, learning_rate):
        self.step += 1
        self.m = self.beta_1 * self.m + (1 - self.beta_1) * gradient
        self.v = self.beta_2 * self.v + (1 - self.beta_2) * gradient**2
        m, v = self.m, self.v
        if self.bias_correction:
            m, v = m / (1 - self.beta_1**self.step), v / (1 - self.beta_2**self.step)
        update = m / (np.sqrt(v) + self.epsilon) + self.decay * self.value
        ratio = 1.0
        if self.adapt and np.linalg.norm(self.value) > 0 and np.linalg.norm(update) > 0:
            ratio = np.linalg.norm(self.value) / np.linalg.norm(update)
        self.value = self.value - learning_rate * ratio * update
        return self.value
