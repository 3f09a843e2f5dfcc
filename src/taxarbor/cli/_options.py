"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

FileFormat: TypeAlias = Literal["csv", "tsv", "parquet", "npy", "npz", "mtx", "h5ad"]

Model = Annotated[
    Path, typer.Argument(help="A model that fit wrote.", metavar="MODEL", show_default=False)
]
Data = Annotated[
    Path,
    typer.Argument(
        help="The rows: csv, tsv, parquet, npy, npz, mtx or h5ad; - is standard input.",
        metavar="DATA",
        show_default=False,
    ),
]
SameData = Annotated[
    Path,
    typer.Argument(
        help="The rows that the model was fitted on, in the same order; - is standard input.",
        metavar="DATA",
        show_default=False,
    ),
]
IdColumn = Annotated[
    str | None, typer.Option(help="Column with the names of the rows.", show_default=False)
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        help="Column with known classes, never used as a feature.", show_default=False
    ),
]
Format = Annotated[
    FileFormat | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Of DATA, if its name does not tell: csv, tsv, parquet, npy, npz, mtx, h5ad.",
    ),
]
Truth = Annotated[
    Path | None,
    typer.Option(
        help="The true tree of the classes: nested JSON or Newick.", show_default=False
    ),
]
Title = Annotated[
    str | None,
    typer.Option(help="Heading of the page; default: the name of DATA.", show_default=False),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Where to write; default, and -: standard output.",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
