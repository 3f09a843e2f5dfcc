"""h5ad files in memory, with names and labels of rows."""

import os
from dataclasses import replace

from taxarbor._errors import counted
from taxarbor.sources._h5ad import get_frame, open_group, open_h5ad, read_column
from taxarbor.sources._reader import check_present
from taxarbor.tables._table import Request, Table, as_labels, make_table


def read_h5ad(path: str | os.PathLike[str], request: Request) -> Table:
    """Return the table in an h5ad file: ``X``, with the names in ``obs`` and ``var``."""
    matrix, names = open_h5ad(path, request.name, in_blocks=False)
    n_rows = matrix.shape[0]
    with open_group(matrix.file) as group:
        obs = get_frame(matrix.file, group, "obs")
        index = obs.attrs["_index"]
        columns = [name for name in obs if name not in ("__categories", index)]
        check_present(request.name, request.text_columns, columns, "column of obs")
        texts = {
            name: read_column(matrix.file, obs, name) for name in (index, *request.text_columns)
        }
    for name, values in texts.items():
        if len(values) != n_rows:
            where = "obs" if name == index else name
            raise request.error(
                f"has {counted(n_rows, 'row')}, and {len(values):,} in {where!r}"
            )
    return replace(
        make_table(request, matrix.read_all(), names),
        row_names=texts[request.id_column or index],
        labels=as_labels(texts.get(request.label_column or "")),
        id_column=request.id_column,
    )
