"""`subword remap-embeddings`: embedding tables for a changed vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from ..remap import FILLS, Remap
from . import common

FillName: TypeAlias = Literal["mean", "zeros"]


def remap_embeddings(
    remap: Annotated[str, typer.Argument(metavar="REMAP", help="What prune --remap wrote.", show_default=False)],
    table: Annotated[str, typer.Argument(metavar="IN", help="A .npy or .safetensors file.", show_default=False)],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.", show_default=False)],
    tensor: Annotated[
        list[str] | None,
        typer.Option(
            "--tensor",
            metavar="NAME",
            show_default=False,
            help="Change this tensor; may be repeated.  [default: those with a row for each old id]",
        ),
    ] = None,
    fill: Annotated[
        FillName,
        typer.Option(
            "--fill",
            metavar="mean|zeros",
            parser=common.one_of(*FILLS),
            help="What ids without a token get: the mean of all rows, or zeros.",
        ),
    ] = "mean",
    force: common.ForceOpt = False,
    json: common.JsonOpt = False,
) -> None:
    """Carry the embeddings of a model over to a changed vocabulary.

    Rows of tokens that stayed are copied as they are; a new token gets the mean of the rows of the tokens that it was
    before. Of a .safetensors file everything else is copied. A table that is padded to more rows than there were ids
    must be named with --tensor; rows beyond the old ids are dropped. Files may be larger than memory. Where a model is
    in several files, the one with the embeddings is to be changed, and the one with the output weights.

    \b
    Examples:
      subword remap-embeddings remap.json model.safetensors smaller.safetensors
      subword remap-embeddings remap.json model.safetensors out.safetensors --tensor model.embed_tokens.weight
      subword remap-embeddings remap.json vectors.npy smaller.npy
    """
    common.check_out(out, force)
    changes = Remap.load(remap)
    changed = changes.apply_to_file(table, out, tensor or None, fill)
    summary: dict[str, Any] = {
        "in": table,
        "out": str(out),
        "tensors": changed,
        "rows_before": changes.old,
        "rows": changes.new,
    }
    common.print_json(summary) if json else _render(summary)


def _render(summary: dict[str, Any]) -> None:
    rows = [("rows", f"{summary['rows']:,} for {summary['rows_before']:,} old ids")]
    if summary["tensors"]:
        rows.append(("changed", "\n".join(summary["tensors"])))
    common.print_card([*rows, ("written to", summary["out"])])
