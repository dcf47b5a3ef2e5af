"""Tables of a fine-tuning's labels: precision, recall and F1 of each, and the confusion matrix."""

import html
from collections.abc import Mapping

from albert_tf.metrics.labels import LabelScores, most_frequent

_MAX_LABELS = 30


def label_tables(by_label: Mapping[str, LabelScores], confusion: Mapping[str, Mapping[str, int]]) -> str:
    """The scores of labels as an HTML table, and the confusion matrix, if there is one, as another.

    A cell of the matrix is the darker, the greater its share of the examples of its label.
    """
    names = most_frequent(by_label, _MAX_LABELS)
    rows = "".join(_scores_row(name, by_label[name]) for name in names)
    head = "".join(f"<th>{name}</th>" for name in ("label", "precision", "recall", "F1", "examples"))
    parts = [f'<div class="wide"><table id="labels"><tr>{head}</tr>{rows}</table></div>']
    if confusion:
        rows = "".join(_matrix_row(name, names, confusion.get(name, {})) for name in names)
        head = "".join(f"<th>{html.escape(name)}</th>" for name in ("label", *names))
        parts.append(
            "<p>Rows are labels, columns predictions; darker is a greater share of the examples of the label.</p>"
        )
        parts.append(f'<div class="wide"><table id="confusion"><tr>{head}</tr>{rows}</table></div>')
    if len(names) < len(by_label):
        parts.append(f"<p>The {len(names)} most frequent of {len(by_label):,} labels; metrics.json has all.</p>")
    return "\n".join(parts)


def _scores_row(name: str, scores: LabelScores) -> str:
    shown = ("undefined" if value is None else f"{value:.4f}" for value in (scores.precision, scores.recall, scores.f1))
    cells = "".join(f'<td class="number">{cell}</td>' for cell in (*shown, f"{scores.examples:,}"))
    return f"<tr><th>{html.escape(name)}</th>{cells}</tr>"


def _matrix_row(name: str, names: list[str], predictions: Mapping[str, int]) -> str:
    total = sum(predictions.values())
    shares = {other: predictions.get(other, 0) / max(total, 1) for other in names}
    cells = "".join(
        f'<td class="number" title="{share:.1%} of {html.escape(name)}" style="background: rgba(70, 130, 180, '
        f'{share:.3f})">{predictions.get(other, 0):,}</td>'
        for other, share in shares.items()
    )
    return f"<tr><th>{html.escape(name)}</th>{cells}</tr>"
