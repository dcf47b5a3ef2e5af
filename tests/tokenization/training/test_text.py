"""Proves which lines a vocabulary is trained and measured on: as many as asked for, the same ones for one seed."""

import gzip
from collections import Counter

import pytest

from albert_tf.tokenization.training.text import TrainingText

LINES = [f"line {number}" for number in range(1000)]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join(LINES) + "\n", encoding="utf-8")
    return path


def drawn(files, heldout_files=(), **options):
    text = TrainingText(files, heldout_files, **options)
    lines = list(text.lines())
    assert len(lines) == text.num_training_lines
    return lines, text.heldout


def test_every_line_is_learnt_from_or_held_out(file, tmp_path):
    lines, heldout = drawn([file])
    (tmp_path / "packed.txt.gz").write_bytes(gzip.compress(file.read_bytes()))
    assert drawn(tmp_path / "packed.txt.gz") == (lines, heldout)
    assert len(heldout) == 10
    assert Counter(lines + heldout) == Counter(LINES)
    assert lines == sorted(lines, key=LINES.index)


def test_as_many_lines_as_asked_for_and_no_others(file):
    lines, heldout = drawn(file, input_sentence_size=300, heldout_share=0.05)
    assert (len(lines), len(heldout), len({*lines, *heldout})) == (300, 50, 350)


def test_a_seed_gives_the_same_lines_again_and_another_one_others(file):
    first, again, other = (drawn(file, input_sentence_size=100, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first[0] != other[0]
    assert first[1] != other[1]


def test_all_lines_are_equally_likely(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a\nb\nc\nd\n", encoding="utf-8")
    counts = Counter(drawn(path, input_sentence_size=1, heldout_share=0, seed=seed)[0][0] for seed in range(4000))
    # 1,000 expected of each; the standard deviation is 27.
    assert all(abs(counts[line] - 1000) < 110 for line in "abcd"), counts


def test_held_out_lines_are_limited(file, monkeypatch):
    monkeypatch.setattr("albert_tf.tokenization.training.text.MAX_HELDOUT_LINES", 7)
    lines, heldout = drawn(file, heldout_share=0.5)
    assert (len(lines), len(heldout)) == (993, 7)


def test_files_to_measure_on_take_the_place_of_held_out_lines(file, tmp_path):
    other = tmp_path / "other.txt.gz"
    other.write_bytes(gzip.compress(b"one\n\ntwo\n"))
    lines, heldout = drawn([file], [other])
    assert lines == LINES
    assert heldout == ["one", "two"]
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(ValueError, match="without held-out text to measure on"):
        drawn([file], tmp_path / "empty.txt")
    with pytest.raises(ValueError, match="`heldout_files` must be files that exist"):
        drawn([file], "nothing.txt")


def test_lines_that_are_too_long_or_hold_nul_are_passed_over(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes("ab\né\nabc\néé\na\0\n".encode())
    text = TrainingText(path, max_sentence_length=3)
    assert (text.num_lines, text.num_skipped_lines) == (5, 2)
    assert list(text.lines()) == ["ab", "é", "abc"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("input_sentence_size", 0), ("max_sentence_length", 2.5)),
        *(("heldout_share", share) for share in (1, -0.1, float("nan"))),
    ],
)
def test_options_that_cannot_be(file, name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be .* Received: {name}="):
        TrainingText(file, **{name: value})


def test_korean_without_a_choice_about_accents_is_warned_of(tmp_path):
    (tmp_path / "ko.txt").write_text("나는 밥을 먹었다 ㅋㅋ ok\n", encoding="utf-8")
    (tmp_path / "en.txt").write_text("I ate rice (밥) today\n", encoding="utf-8")
    korean, english = (TrainingText(tmp_path / name) for name in ("ko.txt", "en.txt"))
    with pytest.warns(UserWarning, match=r"`keep_accents` \(--keep-accents\) should be set for .* mostly Hangul"):
        assert korean.choose_keep_accents(None) is False
    assert [korean.choose_keep_accents(choice) for choice in (True, False)] == [True, False]
    assert english.choose_keep_accents(None) is False
