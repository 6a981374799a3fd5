"""Children and tips, kept up as rows come, are those that a look at every row finds."""

from array import array

from hypothesis import given, settings
from hypothesis import strategies as st

from pi_rpc.core.children import CHAIN_ROWS, NONE, Children, Tips
from pi_rpc.core.heads import Columns, Heads, cut_circles
from pi_rpc.core.stretches import ASCENDING_MAX

VISIBLE, SILENT = 1, 2

_chains = st.lists(
    st.tuples(
        st.one_of(st.integers(1, 2 * CHAIN_ROWS + 3), st.just(ASCENDING_MAX + 5)),
        st.one_of(st.none(), st.integers(0, 400)),
        st.sampled_from([VISIBLE, VISIBLE, SILENT]),
    ),
    max_size=4,
)
"""Of each chain how many rows it has, what the first hangs below, and of what kind they are."""


def grow(heads: Heads, chains: list[tuple[int, int | None, int]]) -> None:
    """Add chains at once; a parent may stand below its child, as in files that were reordered."""
    first = len(heads)
    end = first + sum(length for length, _, _ in chains)
    parents = array("i", range(first - 1, end - 1))
    start = first
    for length, below, _ in chains:
        if below is not None:
            parents[start - first] = below % (end + 1) - 1
        start += length
    cut_circles(parents, first, [row for row in range(first, end) if parents[row - first] >= row])
    heads.extend(
        Columns(
            ids=b"".join(row.to_bytes(4) for row in range(first, end)),
            parents=parents,
            kinds=b"".join(bytes([kind]) * length for length, _, kind in chains),
            odd_ids={},
        )
    )


def tips_of(heads: Heads) -> list[int]:
    bearing: set[int] = set()
    visible = [row for row in range(len(heads)) if heads.kinds[row] == VISIBLE]
    for row in visible:
        above = heads.parents[row]
        while above != NONE:
            bearing.add(above)
            above = heads.parents[above]
    return [row for row in visible if row not in bearing]


@settings(deadline=None)
@given(st.lists(_chains, max_size=3))
def test_what_is_kept_up_is_what_a_look_at_every_row_finds(
    steps: list[list[tuple[int, int | None, int]]],
) -> None:
    heads = Heads()
    children, tips = Children(heads), Tips(heads, bytes([SILENT]))
    for chains in steps:
        grow(heads, chains)
        assert tips.rows() == tips_of(heads)
        children.first(NONE)
    wanted: dict[int, list[int]] = {}
    for row, parent in enumerate(heads.parents):
        wanted.setdefault(parent, []).append(row)
    found = {row: list(children.of(row)) for row in range(NONE, len(heads))}
    assert {row: rows for row, rows in found.items() if rows} == wanted


def test_rows_without_a_place_are_nobody_s() -> None:
    heads = Heads()
    for entry_id in ("0000000a", "0000000b", "0000000a", "0000000c"):
        heads.append(entry_id, len(heads) - 1, VISIBLE)
    children, tips = Children(heads), Tips(heads, b"")
    assert [list(children.of(row)) for row in (NONE, 0, 1, 2)] == [[0], [1], [], [3]]
    assert tips.rows() == [1, 3]
