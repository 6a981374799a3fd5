"""What a pattern fits, and that no pattern takes long to say so."""

import time

import pytest

from pi_rpc.tools.globbing import ALTERNATIVES_MAX, glob_regex


@pytest.mark.parametrize(
    ("glob", "fits", "fits_not"),
    [
        ("*.ts", ["a.ts", ".ts"], ["a/b.ts", "a.tsx"]),
        ("a?c", ["abc"], ["ac", "a/c"]),
        ("s/*.ts", ["s/b.ts"], ["pkg/s/b.ts", "s/x/b.ts"]),
        ("**/s/*.ts", ["s/b.ts", "pkg/s/b.ts", "a/b/s/c.ts"], ["pkgs/b.ts"]),
        ("**/a*b/c", ["ab/c", "ax/axb/c", "ax/ab/c"], ["ax/b/c"]),
        ("src/**", ["src/a", "src/a/b"], ["src", "srcs/a"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb"]),
        ("**/**/b", ["b", "x/b", "x/y/b"], ["ab"]),
        ("a**b", ["ab", "axxb"], ["a/b"]),
        ("**", ["a", "a/b"], []),
        ("[ab].[!c]", ["a.d", "b.x"], ["c.d", "a.c", "a./"]),
        ("[^a]", ["b"], ["a", "/"]),
        ("[a-c]x", ["bx"], ["dx"]),
        ("[]]x", ["]x"], ["x"]),
        ("[[:digit:]]", ["7"], ["a"]),
        ("[z-a]", [], ["m"]),
        ("[!z-a]", ["m"], ["/"]),
        ("[ab", ["[ab"], ["a"]),
        ("{a,b*}.{c,h}", ["a.c", "bob.h"], ["c.c"]),
        ("{a,{b,c}d}", ["a", "bd", "cd"], ["ad"]),
        ("{a,b", ["{a,b"], ["a"]),
        ("a,b}", ["a,b}"], ["a"]),
        ("{,x}a", ["a", "xa"], ["ya"]),
        (r"\*\{a,b\}", ["*{a,b}"], ["xa"]),
        ("a*b*b", ["abb", "axbxb", "abbb"], ["ab"]),
        ("*a*/*b", ["xay/zb", "a/b"], ["x/b"]),
        ("(a|b)+$", ["(a|b)+$"], ["a"]),
    ],
)
def test_a_pattern_fits(glob: str, fits: list[str], fits_not: list[str]) -> None:
    regex = glob_regex(glob)
    assert [path for path in fits + fits_not if regex.match(path)] == fits


def test_case_makes_a_difference_unless_it_is_to_be_ignored() -> None:
    assert not glob_regex("*.MD").match("a.md")
    assert glob_regex("*.MD", ignore_case=True).match("a.md")


@pytest.mark.parametrize("glob", ["{a,b}" * 9, "{" + "a," * ALTERNATIVES_MAX + "b}"])
def test_braces_that_stand_for_too_many_patterns_are_refused(glob: str) -> None:
    with pytest.raises(ValueError, match="more than 256"):
        glob_regex(glob)


def test_many_stars_do_not_take_long() -> None:
    regex = glob_regex("*a" * 30 + "b")
    began = time.process_time()
    assert not regex.match("a" * 250)
    assert time.process_time() - began < 1
