"""The way into this room: the models that these settings allow."""

from collections.abc import Mapping
from pathlib import Path

from pi_rpc.core.ports import Models
from pi_rpc.providers.catalog import Catalog
from pi_rpc.providers.script import script_from_file

SCRIPT_VARIABLE = "PI_RPC_SCRIPT"
"""Names the offline model's script file when no flag does."""


def choose_models(script_file: Path | None, environment: Mapping[str, str]) -> Models:
    """The models there are; the offline one follows `script_file`, else `PI_RPC_SCRIPT`, else none.

    Raises Missing, Outside and Invalid when the script cannot be used, as `script_from_file` does.
    """
    named = environment.get(SCRIPT_VARIABLE, "")
    if script_file is None and named:
        script_file = Path(named)
    return Catalog(None if script_file is None else script_from_file(script_file))
