"""The file of the LSTM is what the Rust side reads: its tests have the same file, and the same answers."""

from pathlib import Path

import numpy as np

from trimtab.muses import lstm

SMALL = Path(__file__).parents[2] / "fuzz" / "seeds" / "lstm" / "small"
#: The actions over forty states; crates/steer/src/muses.rs has the same.
BYTES = SMALL.with_name("bytes")
GOLDEN = "1111113003555555555555555555555555555555"


def small() -> lstm.Teacher:
    """Four units, whose weights are large enough that all of them matter."""
    params = {name: 6.0 * value for name, value in lstm.init(7, 4).items()}
    return lstm.Teacher(
        params, np.full(lstm.SIGNALS, 3000, np.float32), np.full(lstm.SIGNALS, 900, np.float32)
    )


def state(step: int) -> list[int]:
    """A course that every signal takes part in; the remainder keeps its sign, as Rust's does."""
    return [3000 + 900 * ((step * (i + 2)) % 7 - 3) + 10 * step for i in range(lstm.SIGNALS)]


def answers(teacher: lstm.Teacher) -> str:
    """What it does in forty states."""
    carry = lstm.blank(teacher.params, 1)
    said = ""
    for step in range(40):
        seen = teacher.see(np.array([state(step)], np.int16))
        carry, action = lstm.choose(teacher.params, carry, seen)
        said += str(int(action[0]))
    return said


def test_the_file_and_its_answers(tmp_path: Path) -> None:
    teacher = small()
    teacher.save(tmp_path / "small")
    assert (tmp_path / "small").read_bytes() == SMALL.read_bytes()
    assert answers(teacher) == GOLDEN


def test_the_file_of_whole_numbers(tmp_path: Path) -> None:
    teacher = small()
    teacher.save(tmp_path / "bytes", whole=True)
    assert (tmp_path / "bytes").read_bytes() == BYTES.read_bytes()
    read = lstm.Teacher.load(tmp_path / "bytes")
    assert answers(read) == GOLDEN
    for name in lstm.WHOLE:
        off = np.abs(np.asarray(read.params[name]) - np.asarray(teacher.params[name])).max()
        assert 0.0 < off <= 3.0 / 254.0, (name, off)
