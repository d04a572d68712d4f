"""The notebooks run from their first cell to the last: their own assertions say what they show."""

import time
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def test_there_are_three() -> None:
    assert [path.name[0] for path in NOTEBOOKS] == ["1", "2", "3"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="it comes with nbclient: install it to run this test")
    nbclient = pytest.importorskip("nbclient", reason="install it to run this test")
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "they are kept without outputs"
    begun = time.perf_counter()
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute(cwd=str(path.parent))
    print(f"{path.name}: {time.perf_counter() - begun:.1f} s")
