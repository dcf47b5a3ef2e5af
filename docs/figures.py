"""Draws the picture of ALBERT beside BERT, in docs/pictures, from the numbers of `albert_tf.costs`.

    .venv/bin/python docs/figures.py

A file for each language and each of light and dark. A test draws them again and compares.
"""

import dataclasses
import html
import pathlib

from albert_tf.config import AlbertConfig
from albert_tf.costs import Comparison, compare_costs

PICTURES = pathlib.Path(__file__).parent / "pictures"
SIZES = ("base_v2", "large_v2", "xlarge_v2", "xxlarge_v2")
WIDTH, HEIGHT = 680, 380
_FONT = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'Noto Sans KR', 'Malgun Gothic', sans-serif"


@dataclasses.dataclass(frozen=True)
class Colours:
    """Colours of one theme, readable on its page."""

    text: str
    muted: str
    accent: str
    on_accent: str
    albert: str
    bert: str


THEMES = {
    "light": Colours("#1c2430", "#5a6675", "#1f5fbf", "#ffffff", "#d5e3f8", "#e4e7eb"),
    "dark": Colours("#e6e9ee", "#9ba6b4", "#7db0ff", "#10151b", "#2b456b", "#3a444f"),
}
WORDS = {
    "en": {
        "title": "ALBERT beside BERT: factorised embeddings, one block used again in every layer, parameters",
        "layers": "{n} sets of weights",
        "shared": "one set of weights",
        "again": "used {n} times",
        "block": "one block",
        "table": "word embeddings",
        "parameters": "Encoder parameters",
    },
    "ko": {
        "title": "BERT와 ALBERT 비교: 임베딩 분해, 모든 레이어가 함께 쓰는 블록 하나, 파라미터 수",
        "layers": "가중치 {n}벌",
        "shared": "가중치 한 벌",
        "again": "{n}번 반복",
        "block": "블록 하나",
        "table": "단어 임베딩",
        "parameters": "인코더 파라미터 수",
    },
}


def picture(language: str, theme: str) -> str:
    """The picture as SVG, in one language and for one theme."""
    colours, words = THEMES[theme], WORDS[language]
    config = AlbertConfig.from_preset("base_v2")
    both = compare_costs(config)
    parts = [*_bert(config, both, words, colours), *_albert(config, both, words, colours), *_bars(words, colours)]
    title = html.escape(words["title"])
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
            f' font-family="{_FONT}" font-size="16" text-anchor="middle" role="img" aria-label="{title}">',
            f"<title>{title}</title>",
            f'<defs><marker id="tip" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="6" markerHeight="6"'
            f' orient="auto"><path d="M0 0 10 5 0 10z" fill="{colours.accent}"/></marker></defs>',
            *parts,
            "</svg>\n",
        ]
    )


def millions(number: float) -> str:
    """A number of parameters, in millions."""
    return f"{number / 1e6:,.0f} M" if number >= 1e8 else f"{number / 1e6:.1f} M"


def _text(x: float, y: float, text: str, fill: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="{fill}" {more}>{html.escape(text)}</text>'.replace(" >", ">")


def _box(x: float, y: float, width: float, height: float, fill: str, stroke: str) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:.4g}" height="{height:.4g}" rx="3" fill="{fill}" stroke="{stroke}"/>'
    )


def _bert(config: AlbertConfig, both: Comparison, words: dict[str, str], colours: Colours) -> list[str]:
    """A layer above the other, and a table as wide as they are."""
    layers, middle = config.num_hidden_layers, 95
    ours = both.bert.parameters
    each = [_box(15, 75 + 14 * number, 160, 11, colours.bert, colours.muted) for number in range(layers)]
    return [
        _text(middle, 24, "BERT", colours.text, 'font-weight="bold" font-size="18"'),
        _text(middle, 48, words["layers"].format(n=layers), colours.muted),
        *each,
        _text(middle, 266, millions(ours.attention + ours.ffn), colours.text, 'font-weight="bold"'),
        _box(15, 285, 160, 60, colours.bert, colours.muted),
        _text(middle, 312, words["table"], colours.text),
        _text(middle, 333, f"{config.vocab_size:,} × {config.hidden_size}", colours.muted),
        _text(middle, 366, millions(ours.embeddings), colours.text, 'font-weight="bold"'),
    ]


def _albert(config: AlbertConfig, both: Comparison, words: dict[str, str], colours: Colours) -> list[str]:
    """One block with an arrow from its output to its input, above a narrow table and a projection."""
    layers, middle, theirs = config.num_hidden_layers, 280, both.albert.parameters
    narrow = 160 * config.embedding_size / config.hidden_size
    return [
        _text(middle, 24, "ALBERT", colours.accent, 'font-weight="bold" font-size="18"'),
        _text(middle, 48, words["shared"], colours.muted),
        f'<path d="M{middle} 128V88H386V208H{middle}V186" fill="none" stroke="{colours.accent}" stroke-width="2"'
        ' marker-end="url(#tip)"/>',
        _text(middle + 50, 80, words["again"].format(n=layers), colours.accent),
        _box(200, 130, 160, 54, colours.albert, colours.accent),
        _text(middle, 163, words["block"], colours.text, 'font-weight="bold"'),
        _text(middle, 233, millions(theirs.attention + theirs.ffn), colours.text, 'font-weight="bold"'),
        f'<path d="M200 265H360L{middle + narrow / 2:.4g} 283H{middle - narrow / 2:.4g}z" fill="{colours.albert}"'
        f' stroke="{colours.accent}"/>',
        _text(366, 280, f"{config.embedding_size} × {config.hidden_size}", colours.muted, 'text-anchor="start"'),
        _box(middle - narrow / 2, 285, narrow, 60, colours.albert, colours.accent),
        _text(
            middle + narrow / 2 + 8,
            320,
            f"{config.vocab_size:,} × {config.embedding_size}",
            colours.muted,
            'text-anchor="start"',
        ),
        _text(middle, 366, millions(theirs.embeddings + theirs.projection), colours.text, 'font-weight="bold"'),
    ]


def _bars(words: dict[str, str], colours: Colours) -> list[str]:
    """The parameters of each size, ALBERT's below BERT's."""
    costs = {name: compare_costs(AlbertConfig.from_preset(name)) for name in SIZES}
    largest = max(both.bert.parameters.encoder for both in costs.values())
    left, longest, lines = 476, 130, [_text(570, 24, words["parameters"], colours.text, 'font-weight="bold"')]
    for number, (name, both) in enumerate(costs.items()):
        top = 50 + 84 * number
        lines.append(_text(left, top + 14, name.removesuffix("_v2"), colours.text, 'text-anchor="start"'))
        pairs = (
            ("BERT", both.bert, colours.bert, colours.muted),
            ("ALBERT", both.albert, colours.accent, colours.text),
        )
        for row, (model, side, fill, ink) in enumerate(pairs):
            count, y = side.parameters.encoder, top + 22 + 22 * row
            width = max(longest * count / largest, 1.5)
            lines.append(f'<rect x="{left}" y="{y}" width="{width:.4g}" height="17" rx="2" fill="{fill}"/>')
            label = millions(count) + (f"  {model}" if number == 0 else "")
            lines.append(_text(left + width + 6, y + 14, label, ink, 'text-anchor="start"'))
    return lines


def files() -> dict[str, str]:
    """Name and content of each file."""
    return {
        f"albert-{theme}{'' if language == 'en' else f'.{language}'}.svg": picture(language, theme)
        for language in WORDS
        for theme in THEMES
    }


if __name__ == "__main__":
    for name, content in files().items():
        (PICTURES / name).write_text(content, encoding="utf-8")
        print(PICTURES / name)
