"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

FileFormat: TypeAlias = Literal["csv", "tsv", "parquet", "npy", "npz", "mtx", "h5ad"]


def option(help: str, *names: str, **more: Any) -> Any:
    """Declare an option whose default, if there is one, the help tells."""
    return typer.Option(*names, help=help, show_default=False, **more)


def argument(help: str, name: str) -> Any:
    """Declare an argument."""
    return typer.Argument(help=help, metavar=name, show_default=False)


Model = Annotated[Path, argument("A model that fit wrote.", "MODEL")]
Data = Annotated[
    Path,
    argument(
        "Rows: csv, tsv, parquet, npy, npz, mtx or h5ad, or a folder of parquet files; - is "
        "standard input.",
        "DATA",
    ),
]
SameData = Annotated[
    Path,
    argument("The rows the model was fitted on, in their order; - is standard input.", "DATA"),
]
Clusters = Annotated[
    int | None,
    option("Number of clusters to keep: the last splits are undone.", "--clusters", min=1),
]
IdColumn = Annotated[
    str | None, option("Column with the names of the rows; default: the one that names all.")
]
LabelColumn = Annotated[
    str | None, option("Column with known classes, never used as a feature.")
]
Format = Annotated[
    FileFormat | None,
    option("Format of DATA, if its name does not tell.", "--format", metavar="FORMAT"),
]
Embedding = Annotated[
    str | None,
    option("Vectors to find clusters in: a column, an entry of obsm, or a .npy file."),
]
Truth = Annotated[Path | None, option("The true tree of the classes, in JSON.")]
Title = Annotated[str | None, option("Heading of the page; default: the name of DATA.")]
Output = Annotated[
    Path | None, option("File to write; default: standard output.", "--output", "-o")
]
Page = Annotated[Path, option("The page to write, say report.html.", "--output", "-o")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
