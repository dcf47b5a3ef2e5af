"""How the file of a table is read."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TableFormat:
    r"""How the file of a table is read; JSON and Parquet files need no more than `rename`.

    Attributes:
        header: whether the first row of a TSV or CSV file names the columns; otherwise they are numbered from 0.
        drop_ragged: whether to leave out rows with more or fewer fields than the header, with a warning.
        encoding: of text files. None: that of the byte-order mark, otherwise UTF-8.
        delimiter: between the fields of a row, which may be in double quotes; `"tab"` and `"\t"` are the same. None: a
            tab in .tsv and .txt, where quotes are text; a comma in .csv; unless the header has just another one of
            comma, semicolon, tab and "|".
        rename: new names of columns by their names in the file.

    Raises:
        ValueError: the delimiter is not one character, or two columns get one name.
    """

    header: bool = True
    drop_ragged: bool = False
    encoding: str | None = None
    delimiter: str | None = None
    rename: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self):
        if self.delimiter in ("tab", r"\t"):
            object.__setattr__(self, "delimiter", "\t")
        if len(set(self.rename.values())) < len(self.rename):
            raise ValueError(f"`rename_columns` must give different names. Received: {dict(self.rename)}.")
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise ValueError(f"`delimiter` must be one character, such as ';', or 'tab'. Received: {self.delimiter!r}.")
