"""`longest_match` for many words at once: all words go one character on in each step, as NumPy arrays.

W words, C characters of all words, A words that are not yet done.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from albert_tf.tokenization.characters import CODE_POINTS
from albert_tf.tokenization.longest_match import MAX_WORD_LENGTH, LongestMatch

# No edge leads to node 0; a word's first piece is looked for from the first of these, the others from the second.
_NOWHERE, _INITIAL, _FOLLOWING = range(3)
_NO_PIECE = -1
# The odd number next to 2**64 divided by the golden ratio spreads keys that are close to each other.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_ROOM_OF_AN_EDGE = 4
# A step costs about as much for so few words as for one; one by one they are done as soon.
_FEW_WORDS = 16

Ints = npt.NDArray[np.int64]


class LongestMatchInArrays:
    """Greedy longest match of many words, with the ids of one by one.

    Args:
        one_by_one: what splits a word, and the words that are left when the others are done.

    Call arguments:
        code_points: int32 [C], the words one behind the other.
        starts: int64 [W], where each begins, the first at 0.

    Returns:
        int32 [C], the ids of each word in order, somewhere between its first and its last character, and -1 elsewhere.

    Example:

    >>> match = LongestMatchInArrays(LongestMatch({"un": 1, "una": 2}, {"able": 3, "ff": 4, "f": 5}, unknown=0))
    >>> found = match(np.array([ord(character) for character in "unaffableunable"], np.int32), np.array([0, 9]))
    >>> [row[row >= 0].tolist() for row in np.split(found, [9])]
    [[2, 4, 3], [0]]
    """

    def __init__(self, one_by_one: LongestMatch):
        self._one_by_one = one_by_one
        roots = ((_INITIAL, one_by_one.initial), (_FOLLOWING, one_by_one.following))
        characters = sorted({character for _, pieces in roots for piece in pieces for character in piece})
        numbers = {character: number for number, character in enumerate(characters, 1)}
        self._letters = np.zeros(CODE_POINTS, np.int32)  # 0: in no piece
        self._letters[[ord(character) for character in characters]] = np.arange(1, len(characters) + 1)
        self._alphabet = len(characters) + 1
        edges: dict[int, int] = {}
        accepted = [_NO_PIECE] * (_FOLLOWING + 1)
        for root, pieces in roots:
            for piece, index in pieces.items():
                node = root
                for character in piece:
                    node = edges.setdefault(node * self._alphabet + numbers[character], len(accepted))
                    if node == len(accepted):
                        accepted.append(_NO_PIECE)
                accepted[node] = index
        self._edges = _Edges(edges)
        self._accepted = np.array(accepted, np.int32)

    def __call__(self, code_points: npt.NDArray[np.int32], starts: Ints) -> npt.NDArray[np.int32]:
        found = np.full(len(code_points), _NO_PIECE, np.int32)
        ends = np.append(starts, len(code_points))[1:]
        too_long = ends - starts > MAX_WORD_LENGTH
        # One more, for words that have been read to the end of the text.
        letters = self._letters[np.append(code_points, 0)]
        walks = _Walks.begin(starts[~too_long], ends[~too_long])
        unknown = [_Walks.begin(starts[too_long], ends[too_long])]
        while len(walks.word) > _FEW_WORDS:
            stopped = self._go_on(walks, letters)
            if len(stopped):
                pieces = walks.piece[stopped]
                found[walks.start[stopped]] = pieces
                lost = pieces == _NO_PIECE
                unknown.append(walks.take(stopped[lost]))
                walks.begin_piece(stopped)
                done = stopped[lost | (walks.place[stopped] == walks.end[stopped])]
                walks = walks.take(np.delete(np.arange(len(walks.word)), done)) if len(done) else walks
        for word, end in zip(walks.word.tolist(), walks.end.tolist()):
            ids = np.frombuffer(self._one_by_one("".join(map(chr, code_points[word:end].tolist()))), np.int32)
            found[word:end] = _NO_PIECE
            found[word : word + len(ids)] = ids
        words, places = (np.concatenate([getattr(part, name) for part in unknown]) for name in ("word", "start"))
        found[_ranges(words, places)] = _NO_PIECE
        found[words] = self._one_by_one.unknown
        return found

    def _go_on(self, walks: "_Walks", letters: npt.NDArray[np.int32]) -> Ints:
        """Reads one more character of each word; returns the numbers of those that no piece goes on with."""
        node = self._edges.follow(walks.node * self._alphabet + letters[walks.place])
        node[walks.place == walks.end] = _NOWHERE
        goes_on = node != _NOWHERE
        walks.node = node
        walks.place = walks.place + goes_on
        piece = self._accepted[node]
        complete = piece != _NO_PIECE
        walks.piece = np.where(complete, piece, walks.piece)
        walks.piece_end = np.where(complete, walks.place, walks.piece_end)
        return np.flatnonzero(~goes_on)


@dataclass
class _Walks:
    """How far each word has been read, all [A]; places count characters of all words.

    Attributes:
        word, end: where the word begins and ends.
        start: where the piece that is looked for begins.
        place: the next character to read.
        node: which node of the tree the characters from `start` to `place` led to.
        piece, piece_end: the longest piece found from `start` on, -1 if there is none, and where it ends.
    """

    word: Ints
    end: Ints
    start: Ints
    place: Ints
    node: Ints
    piece: npt.NDArray[np.int32]
    piece_end: Ints

    @classmethod
    def begin(cls, starts: Ints, ends: Ints) -> "_Walks":
        """Words that nothing has been read of."""
        node, piece = np.full(len(starts), _INITIAL, np.int64), np.full(len(starts), _NO_PIECE, np.int32)
        return cls(starts, ends, starts.copy(), starts, node, piece, starts)

    def begin_piece(self, which: Ints) -> None:
        """Looks in these words for the next piece, behind the one found."""
        self.start[which] = self.place[which] = self.piece_end[which]
        self.node[which], self.piece[which] = _FOLLOWING, _NO_PIECE

    def take(self, which: Ints) -> "_Walks":
        """Returns these words alone."""
        return _Walks(*(getattr(self, field.name)[which] for field in fields(self)))


class _Edges:
    """Which node follows on a node and a character: a hash table with linear probing.

    Args:
        edges: keys, at least 0, and nodes.
    """

    def __init__(self, edges: Mapping[int, int]):
        bits = (_ROOM_OF_AN_EDGE * len(edges) + 1).bit_length()
        self._shift = np.uint64(64 - bits)
        self._mask = (1 << bits) - 1
        slots = self._slots(np.array(list(edges), np.int64)).tolist()
        table: dict[int, int] = {}
        for key, slot in zip(edges, slots, strict=True):
            while slot in table:
                slot = (slot + 1) & self._mask
            table[slot] = key
        self._keys = np.full(1 << bits, -1, np.int64)
        self._keys[list(table)] = list(table.values())
        self._nodes = np.zeros(1 << bits, np.int64)
        self._nodes[list(table)] = [edges[key] for key in table.values()]

    def follow(self, keys: Ints) -> Ints:
        """Returns the node of each key, `_NOWHERE` where there is no edge: [A] in, [A] out."""
        slots = self._slots(keys)
        met = self._keys[slots]
        nodes = np.where(met == keys, self._nodes[slots], _NOWHERE)
        others = np.flatnonzero((met != keys) & (met != -1))
        while len(others):
            slots[others] = (slots[others] + 1) & self._mask
            met = self._keys[slots[others]]
            equal = met == keys[others]
            nodes[others[equal]] = self._nodes[slots[others[equal]]]
            others = others[~equal & (met != -1)]
        return nodes

    def _slots(self, keys: Ints) -> Ints:
        return ((keys.view(np.uint64) * _SPREAD) >> self._shift).view(np.int64)


def _ranges(starts: Ints, ends: Ints) -> Ints:
    """Returns the numbers of all ranges, one behind the other."""
    lengths = ends - starts
    return np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
