"""Proves that `albert-tf info --check` shows every check, and ends with 0 only where all pass."""

from tests.disk import change_json
from tests.toy_task import write_pretrained

from .terminal import mistake, output_of, run


def rows(printed):
    return {cells[0]: cells[1:] for line in printed.splitlines() if len(cells := [c.strip() for c in split(line)]) == 3}


def split(line):
    return line.strip("│ \n").split("│")


def test_a_sound_folder_and_what_is_wrong_with_it(tmp_path):
    folder = write_pretrained(tmp_path)
    found = rows(output_of("info", folder, "--check"))
    assert list(found) == ["files", "weights", "values", "vocabulary", "special pieces", "capital letters"]
    assert {result for result, _ in found.values()} == {"ok"}
    assert found["special pieces"][1] == "<pad> 0, <unk> 1, [CLS] 2, [SEP] 3, [MASK] 4."
    change_json(folder / "tokenizer_config.json", do_lower_case=False)
    code, printed, complaint = run("info", folder, "--check")
    assert (code, complaint) == (2, "")
    assert {name for name, (result, _) in rows(printed).items() if result == "wrong"} == {"capital letters"}


def test_no_checkpoint(tmp_path):
    assert "nowhere does not exist" in mistake("info", tmp_path / "nowhere", "--check")
