"""Options that are misspelt or do not go together are refused."""

import pytest
from pydantic import ValidationError

from tests.data.small_corpus import options_for


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_seq_len": 3}, "max_seq_len\n"),
        ({"objective": "none", "reference_pairs": True}, "no pairs"),
        ({"pack": True, "format": "documents"}, "`pack` must be False"),
        ({"runner": "local", "beam_options": ("--runner=FlinkRunner",)}, "`beam_options` must be empty with"),
        ({"runner": "beam", "num_processes": 2}, "`num_processes` must be 1 with runner"),
    ],
)
def test_options_that_do_not_go_together(tmp_path, changes, message):
    with pytest.raises(ValidationError, match=message):
        options_for(tmp_path, tmp_path / "examples", **changes)
