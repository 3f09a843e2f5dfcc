"""Results on disk, long form: one line per job and measure, appended as jobs end.

A job's lines are written at once, and end with the same measure. What a crash cuts off is
dropped when the file is next opened; a job that lacks its end is run again.
"""

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, final

from taxarbor._errors import FileFormatError
from taxarbor.bench._jobs import CLOSING, DONE, Job, Outcome, code_digest, commit, machine

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    *Job._fields,
    "measure",
    "value",
    "status",
    "seconds",
    "peak_mb",
    "code",
    "commit",
    "machine",
)
WHOLE = ("max_rows", "n_clusters", "branching", "seed")
DECIMAL = ("value", "seconds", "peak_mb")
TEXT = tuple(name for name in COLUMNS if name not in WHOLE + DECIMAL)


@final
class Store:
    """The results in one file.

    Parameters
    ----------
    path : Path
        A CSV file; made when the first result comes.

    Raises
    ------
    FileFormatError
        If there is a file of another kind.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if path.exists():
            self._mend()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_heading())

    def known(self) -> set[Job]:
        """Return the jobs that this code has results for; those that failed are tried again."""
        found = self.read()
        return set(_jobs(found[(found["code"] == code_digest()) & (found["status"] == DONE)]))

    def add(self, job: Job, outcome: Outcome) -> None:
        """Append the outcome of a job and see that it is on the disk."""
        told = sorted(
            (outcome.measures or {"": float("nan")}).items(),
            key=lambda measure: measure[0] == CLOSING,
        )
        end = (
            " ".join(outcome.status.split()),
            f"{outcome.seconds:.4f}",
            f"{outcome.peak_mb:.1f}",
            code_digest(),
            commit(),
            machine(),
        )
        lines = "".join(_line((*job, name, repr(float(value)), *end)) for name, value in told)
        with self._path.open("a", encoding="utf-8", newline="") as file:
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())

    def read(self) -> "pd.DataFrame":
        """Return all results as a data frame; of a job that was run again, the last.

        Jobs that are done but lack lines, as the crash came between two, are left out.
        """
        import pandas as pd

        found = pd.read_csv(
            self._path,
            dtype=dict.fromkeys(TEXT, str),  # a digest may look like a number
            keep_default_na=False,
            na_values={name: ["nan"] for name in DECIMAL},
        )
        keys = [*Job._fields, "code"]
        found = found.drop_duplicates([*keys, "measure"], keep="last")
        whole = found[(found["measure"] == CLOSING) | (found["status"] != DONE)]
        last = whole.drop_duplicates(keys, keep="last")[[*keys, "status"]]
        return found.merge(last, on=[*keys, "status"])

    def _mend(self) -> None:
        """Check the heading, and drop the jobs at the end that were not written whole."""
        found = self._path.read_bytes()  # what was cut off need not be UTF-8
        if _heading().startswith(found):
            self._path.write_bytes(_heading())
        elif not found.startswith(_heading()):
            raise FileFormatError(
                f"{str(self._path)!r} is not a results file of this version; "
                "move it away or choose another folder"
            )
        elif (end := _end(found)) < len(found):
            os.truncate(self._path, end)


def _heading() -> bytes:
    return _line(COLUMNS).encode()


def _end(found: bytes) -> int:
    """Return where the last whole line ends: outside of quotes, of which there are pairs."""
    end = found.rfind(b"\n") + 1
    while found.count(b'"', 0, end) % 2:
        end = found.rfind(b"\n", 0, end - 1) + 1
    return end


def _jobs(found: "pd.DataFrame") -> Iterator[Job]:
    for values in found[list(Job._fields)].drop_duplicates().itertuples(index=False):
        yield Job(*values)


def _line(values: tuple[object, ...]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()
