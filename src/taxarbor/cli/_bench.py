"""``taxarbor bench``: the comparison with other methods."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from taxarbor._errors import TaxarborError
from taxarbor.bench import PARTS, Part, Setup, run_experiment, write_pages
from taxarbor.bench import Progress as State
from taxarbor.cli._guard import refuse

app = typer.Typer(
    help="Compare HMMC with other methods, as the paper does.", no_args_is_help=True
)

Data = Annotated[
    Path | None,
    typer.Option(
        help="Folder with NAME.npz (X, y) or NAME.csv (a column class, label or y), and the "
        "tree of the classes in NAME.hierarchy.json or NAME.nwk. Default: the bundled animals."
    ),
]
Out = Annotated[Path, typer.Option(help="Folder for results.csv, the pages and the figures.")]
Report = Annotated[Path | None, typer.Option(help="Where to write the page; default: in OUT.")]
Quick = Annotated[bool, typer.Option(help="1,000 rows of each data set, few settings.")]
Seeds = Annotated[
    int | None,
    typer.Option(min=1, help="Seeds of every method that is random: 5, or 1 if quick."),
]
Scaling = Annotated[
    Literal["none", "unit", "standard"],
    typer.Option(help="Leave rows as they are, give them unit length, or standardise columns."),
]
Jobs = Annotated[int, typer.Option("--n-jobs", min=1, help="Fits side by side, a thread each.")]
Limit = Annotated[float, typer.Option(min=1.0, help="Seconds that one fit may take.")]
Json = Annotated[bool, typer.Option("--json", help="Say as JSON what was written.")]


def _add(name: str, parts: tuple[Part, ...], told: str) -> None:
    def command(
        data: Data = None,
        out: Out = Path("results"),
        report: Report = None,
        quick: Quick = False,
        seeds: Seeds = None,
        scaling: Scaling = "none",
        n_jobs: Jobs = 2,
        time_limit: Limit = 600.0,
        as_json: Json = False,
    ) -> None:
        setup = Setup.quick(data, scaling) if quick else Setup(data, scaling)
        setup = setup if seeds is None else replace(setup, n_seeds=seeds)
        page = report or out / f"{'results' if len(parts) > 1 else name}.md"
        page = page if page.suffix else page.with_suffix(".md")  # its folder has the bare name
        try:
            with _bar() as observer:
                store = run_experiment(
                    parts,
                    setup,
                    out,
                    n_workers=n_jobs,
                    time_limit=time_limit,
                    observer=observer,
                )
            written = write_pages(parts, store, setup, page)
        except (TaxarborError, ValueError, OSError) as error:
            refuse(str(error))
        except ModuleNotFoundError as error:
            refuse(f"{error}; the comparison needs: pip install 'taxarbor[bench]'")
        except KeyboardInterrupt:
            refuse(f"interrupted; what is done is kept in {out}: run it again to go on", 130)
        paths = [str(path) for path in written]
        typer.echo(json.dumps({"written": paths}) if as_json else f"wrote {paths[0]}")

    app.command(name, help=told)(command)


_add(
    "table",
    ("table",),
    "Table 1: every method on every data set.\n\nExample: taxarbor bench table --quick",
)
_add(
    "scalings",
    ("scalings",),
    "HMMC and HKM-D on rows scaled in other ways.\n\nExample: taxarbor bench scalings --quick",
)
_add(
    "sweep",
    ("sweep",),
    "Figure 2: more clusters, more children.\n\nExample: taxarbor bench sweep --quick",
)
_add(
    "sparsity",
    ("sparsity",),
    "Figure 3: zero weights.\n\nExample: taxarbor bench sparsity --quick",
)
_add(
    "tree",
    ("tree",),
    "Figure 4: the first layers of a tree, of the first data set with a true tree and named "
    "features.\n\nExample: taxarbor bench tree --quick",
)
_add(
    "all",
    tuple(part for part in PARTS if part != "defaults"),
    "All of the paper's experiment.\n\nExample: taxarbor bench all --quick --out results",
)
_add(
    "defaults",
    ("defaults",),
    "Why HMMC's defaults are what they are: rivals, and one choice made otherwise at a time."
    "\n\nExample: taxarbor bench defaults --quick",
)


@contextmanager
def _bar() -> Iterator[Callable[[State], None]]:
    """Show a bar on standard error; nothing where that is no terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=1.0, count="")

        def observe(state: State) -> None:
            name = "" if state.job is None else f"{state.job.method} on {state.job.dataset}"
            bar.update(
                task,
                completed=state.share,
                description=f"{name:<32}",
                count=f"{state.n_done}/{state.n_jobs}",
            )

        yield observe
