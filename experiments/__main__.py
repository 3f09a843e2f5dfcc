"""``python -m experiments PAGE`` writes a page of measurements."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from experiments.calibration import write_calibration
from experiments.defaults import plan_defaults, write_defaults
from experiments.groups import write_groups
from experiments.plan import Setup, plan_results
from experiments.results import write_results
from experiments.robustness import write_robustness
from experiments.rules import plan_rules, write_rules
from experiments.run import Progress, run_jobs
from experiments.stability import write_stability
from taxarbor import TaxarborError

PAGES = {
    "results": (plan_results, write_results),
    "defaults": (plan_defaults, write_defaults),
    "rules": (plan_rules, write_rules),
}

ALONE = {
    "calibration": (write_calibration, 3),
    "stability": (write_stability, 1),
    "robustness": (write_robustness, 3),
    "tables": (write_groups, 5),
}
"""Pages whose results are not kept, and their seeds."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what has no result yet, and write the page; return the exit status."""
    asked = _parser().parse_args(arguments)
    setup = (Setup.quick if asked.quick else Setup)(asked.data)
    setup = setup if asked.seeds is None else replace(setup, n_seeds=asked.seeds)
    page = asked.report or asked.out / asked.page
    try:
        if asked.page in ALONE:
            write_alone, n_seeds = ALONE[asked.page]
            n_seeds = asked.seeds or (1 if asked.quick else n_seeds)
            page = write_alone(asked.data, page.with_suffix(".md"), n_seeds, setup.max_rows)
            print(f"wrote {page}")
            return 0
        plan, write = PAGES[asked.page]
        store = run_jobs(
            plan(setup),
            setup.folder,
            asked.out,
            n_workers=asked.n_jobs,
            time_limit=asked.time_limit,
            observer=_show,
        )
        written = write(store, setup, page.with_suffix(".md"))  # its figures have the bare name
    except (TaxarborError, ValueError, OSError) as error:
        print(f"experiments: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        hint = f"interrupted; finished fits are kept in {asked.out}: run it again to continue"
        print(f"experiments: {hint}", file=sys.stderr)
        return 130
    print(f"wrote {written[0]}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m experiments", description=__doc__)
    parser.add_argument(
        "page",
        choices=[*PAGES, *ALONE],
        help="the paper's experiment, the choice of Taxarbor's defaults, what rules cost, "
        "calibration of probabilities (three seeds, unless --seeds), the suggested number of "
        "clusters (one), the cost of missing values and outliers (three), or groups in tables "
        "(five)",
    )
    parser.add_argument(
        "--data",
        type=Path,
        help="folder with NAME.npz (X, y) and the tree of the classes in NAME.hierarchy.json; "
        "default: the bundled animals",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("results"), help="folder of results.jsonl"
    )
    parser.add_argument("--report", type=Path, help="the page to write; default: in OUT")
    parser.add_argument(
        "--quick", action="store_true", help="1,000 rows of each data set, few settings"
    )
    parser.add_argument(
        "--seeds", type=_count, help="seeds of every method that is random: 5, or 1 if quick"
    )
    parser.add_argument(
        "--n-jobs", type=_count, default=2, help="fits side by side, a thread each"
    )
    parser.add_argument(
        "--time-limit", type=_count, default=600, help="seconds that one fit may take"
    )
    return parser


def _count(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return int(text)


def _show(state: Progress) -> None:
    """Show one line on standard error; nothing where that is no terminal."""
    if sys.stderr.isatty():
        name = "" if state.job is None else f"{state.job.method} on {state.job.dataset}"
        end = "\n" if state.n_done == state.n_jobs else ""
        line = f"{state.n_done}/{state.n_jobs} fits, {100 * state.share:.0f} %  {name}"
        print(f"\r\x1b[K{line}", end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
