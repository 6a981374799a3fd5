"""The way into this room: the models that these settings allow."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pi_rpc.providers.catalog import Catalog
from pi_rpc.providers.script import script_from_file

if TYPE_CHECKING:
    from pi_rpc.providers.asking import Retention
    from pi_rpc.providers.remote_catalog import RemoteCatalog

SCRIPT_VARIABLE = "PI_RPC_SCRIPT"
"""Names the offline model's script file when no flag does."""

RETENTION_VARIABLE = "PI_CACHE_RETENTION"
"""`long` asks providers to keep the beginning of a context for longer, `none` not to keep it."""


def choose_models(
    script_file: Path | None,
    environment: Mapping[str, str],
    agent_dir: Path | None = None,
    named: tuple[str, str] | None = None,
) -> Catalog:
    """The models there are; the offline one follows `script_file`, else `PI_RPC_SCRIPT`, else none.

    With the user's folder `agent_dir` those on the net are there too. `named` is the model to begin
    with. Raises Missing, Outside and Invalid when the script cannot be used, as `script_from_file`
    does.
    """
    variable = environment.get(SCRIPT_VARIABLE, "")
    if script_file is None and variable:
        script_file = Path(variable)
    script = None if script_file is None else script_from_file(script_file)
    if agent_dir is None:
        return Catalog(script, named=named)
    return Catalog(script, partial(_remote, agent_dir, environment), named)


def _remote(agent_dir: Path, environment: Mapping[str, str]) -> "RemoteCatalog":
    # Loaded when it is first asked for: a session with the offline model never does.
    from pi_rpc.providers.remote_catalog import RemoteCatalog  # noqa: PLC0415

    wanted = environment.get(RETENTION_VARIABLE)
    retention: Retention = "long" if wanted == "long" else "none" if wanted == "none" else "short"
    return RemoteCatalog(agent_dir, environment, retention=retention)
