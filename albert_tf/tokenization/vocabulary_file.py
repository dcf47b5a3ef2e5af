"""Vocabularies that are text files, one piece a line, and the two ways such pieces are put together to words."""

from collections.abc import Sequence
from pathlib import Path

from albert_tf.tokenization.piece_model import SpecialPieceIds

WORDPIECE, WORD_END = SCHEMES = ("wordpiece", "word_end")
CONTINUATION = "##"
END_MARK = "_"

PAD_PIECE, UNK_PIECE, CLS_PIECE, SEP_PIECE, MASK_PIECE = SPECIAL_PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

# Of the pieces of a `word_end` vocabulary about every second one ends a word; of any other next to none.
_SHARE_OF_ENDS = 0.1


def read_vocabulary(path: str | Path) -> tuple[str, ...]:
    """Reads the pieces in order of their ids.

    Args:
        path: a UTF-8 file, one piece a line; a byte-order mark at its start is dropped.

    Returns:
        The pieces. A blank line is a piece that no text yields.

    Raises:
        ValueError: if the file is not UTF-8, or is empty.
    """
    try:
        text = Path(path).read_text(encoding="utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"A vocabulary file must be UTF-8 text. Received: {path}, where byte {error.start} is no UTF-8; convert "
            "the file, for example with iconv."
        ) from error
    lines = text.removesuffix("\n").split("\n")
    pieces = tuple((line.split() or [" "])[0] for line in lines)
    if pieces == (" ",):
        raise ValueError(f"The vocabulary file {path} is empty; copy it again, or give another.")
    return pieces


def find_special_ids(pieces: Sequence[str], source: str) -> SpecialPieceIds:
    """Looks up the special pieces.

    A vocabulary may do without [PAD]: the attention mask hides padding, so any id can stand there, and id 0 does.

    Args:
        pieces: the vocabulary.
        source: where it came from, for the message.

    Returns:
        The ids.

    Raises:
        ValueError: if a piece is there twice, or a special one is missing.

    Example:

    >>> find_special_ids(["[CLS]", "[SEP]", "[MASK]", "[UNK]"], "an example")
    SpecialPieceIds(pad=0, unk=3, cls=0, sep=1, mask=2)
    """
    ids = {piece: index for index, piece in enumerate(pieces)}
    if len(ids) != len(pieces):
        twice = next(piece for index, piece in enumerate(pieces) if ids[piece] != index)
        raise ValueError(
            f"A vocabulary must hold each piece once. Received: {source}, where {twice!r} is at {pieces.index(twice)} "
            f"and {ids[twice]}; rename one of the two, as the model has an embedding for each."
        )
    missing = [piece for piece in SPECIAL_PIECES[1:] if piece not in ids]
    if missing:
        raise ValueError(
            f"A vocabulary file must have the pieces {', '.join(SPECIAL_PIECES[1:])}. Received: {source}, which lacks "
            f"{', '.join(missing)}; give the file that the model was made with."
        )
    return SpecialPieceIds(ids.get(PAD_PIECE, 0), *(ids[piece] for piece in SPECIAL_PIECES[1:]))


def recognise_scheme(pieces: Sequence[str]) -> str:
    """Tells how a vocabulary's pieces make words, from their looks.

    >>> recognise_scheme(["un", "##able"]), recognise_scheme(["밥", "을_", "나", "는_"])
    ('wordpiece', 'word_end')
    """
    ends = sum(piece.endswith(END_MARK) for piece in pieces)
    continuations = sum(piece.startswith(CONTINUATION) for piece in pieces)
    return WORD_END if ends > max(continuations, _SHARE_OF_ENDS * len(pieces)) else WORDPIECE
