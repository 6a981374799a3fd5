"""Frontmatter, arguments and templates."""

import pytest

from pi_rpc.core.instructions import (
    Document,
    FrontmatterError,
    arguments_from,
    context_section,
    document_from,
    expanded,
    is_hidden,
    name_problem,
    skill_call,
    skills_section,
    split_command,
    summary_of,
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("plain", Document({}, "plain")),
        ("---\nname: a\n---\nbody", Document({"name": "a"}, "body")),
        ("\ufeff---\r\nname: a\r\n---\r\nbody\r\n", Document({"name": "a"}, "body\n")),
        ("---\nno end", Document({}, "---\nno end")),
        (
            "---\n# said\n\na: 'it''s' \nb: \"x\\\"y\\n\"\n---\n",
            Document({"a": "it's", "b": 'x"y\n'}, ""),
        ),
        ("---\na: b: c # why\n---\n", Document({"a": "b: c"}, "")),
        (
            "---\na: |\n  one\n  two\nb: >-\n  one\n  two\n---\n",
            Document({"a": "one\ntwo", "b": "one two"}, ""),
        ),
        ("---\na: one\n  two\nb:\n---\n", Document({"a": "one two", "b": ""}, "")),
        (
            "---\nlist:\n  - a\n  - b\nc: [1, 2]\n---\n",
            Document({"list": "- a - b", "c": "[1, 2]"}, ""),
        ),
        ("---\na: http://x#y\n---\n", Document({"a": "http://x#y"}, "")),
    ],
)
def test_a_document_is_frontmatter_and_body(text: str, wanted: Document) -> None:
    assert document_from(text) == wanted


@pytest.mark.parametrize("inner", ["just words", "a: 'open", "a: [1", "- item"])
def test_frontmatter_that_is_none_is_said_to_be_none(inner: str) -> None:
    with pytest.raises(FrontmatterError):
        document_from(f"---\n{inner}\n---\nbody")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", []),
        ("a  b\tc\nd", ["a", "b", "c", "d"]),
        ('"a b" c\'d e', ["a b", "c'd", "e"]),
        ("'' \"\"", ["", ""]),
        (r"'it\'s' " + r'"say \"x\" \n"', ["it's", r'say "x" \n']),
        ("'open a", ["'open", "a"]),
        ('"a"b', ['"a"b']),
    ],
)
def test_arguments_are_parted_as_quotes_say(text: str, wanted: list[str]) -> None:
    assert arguments_from(text) == wanted


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("$1|$2|$3|$4", "a b|c'd|e|"),
        ("$@", "a b c'd e"),
        ("$ARGUMENTS!", "a b c'd e!"),
        ("${1:-x} ${9:-x y}", "a b x y"),
        ("${@:-none}", "a b c'd e"),
        ("${@:2}", "c'd e"),
        ("${@:0:1}", "a b"),
        ("${@:2:1}", "c'd"),
        ("$10", ""),
        ("$$ ${x} $x ${@:-", "$$ ${x} $x ${@:-"),
        ("\n  $1\n", "a b"),
    ],
)
def test_placeholders_are_filled_once(body: str, wanted: str) -> None:
    assert expanded(body, ["a b", "c'd", "e"]) == wanted


def test_values_are_not_expanded_again() -> None:
    assert expanded("$1", ["$2", "x"]) == "$2"
    assert expanded("${ARGUMENTS:-nothing}", []) == "nothing"
    assert expanded("$10", [str(number) for number in range(1, 12)]) == "10"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("/rev", ("rev", "")),
        ("/rev\tx", ("rev", "x")),
        ("/rev a  b\n", ("rev", "a  b\n")),
        ("/skill:x\ty", ("skill:x", "y")),
        (" /rev x", None),
        ("/ x", None),
        ("rev", None),
        ("", None),
    ],
)
def test_a_command_ends_at_any_white_space(text: str, wanted: tuple[str, str] | None) -> None:
    assert split_command(text) == wanted


@pytest.mark.parametrize("name", ["a", "a-b", "x1"])
def test_names_of_skills(name: str) -> None:
    assert name_problem(name) is None


@pytest.mark.parametrize("name", ["A", "a--b", "-a", "a-", "a b", "x" * 65, ""])
def test_odd_names_of_skills(name: str) -> None:
    assert name_problem(name) is not None


def test_a_template_describes_itself_or_begins_with_what_it_is() -> None:
    assert summary_of(Document({"description": "d"}, "x")) == "d"
    assert summary_of(Document({}, "\n\nFirst.\nSecond.")) == "First."
    assert summary_of(Document({}, "x" * 70)) == "x" * 60 + "..."
    assert summary_of(Document({}, "")) == ""


def test_a_skill_can_be_the_users_alone() -> None:
    assert is_hidden(Document({"disable-model-invocation": "true"}, ""))
    assert not is_hidden(Document({"disable-model-invocation": "false"}, ""))


def test_a_call_of_a_skill_names_its_place_and_says_the_rest_below() -> None:
    assert skill_call("a", "/s/a/SKILL.md", "\nDo.\n", " it now ") == (
        '<skill name="a" location="/s/a/SKILL.md">\n'
        "Relative paths in this skill start from /s/a.\n\nDo.\n</skill>\n\nit now"
    )
    assert skill_call("a", "/a.md", "Do.", "").endswith("</skill>")


def test_sections_are_escaped() -> None:
    said = skills_section([("a", "<b> & c", "/s/a.md")])
    assert "<description>&lt;b&gt; &amp; c</description>" in said
    assert context_section([("/a", "x\n"), ('/"b"', "y")]) == (
        '<instructions path="/a">\nx\n</instructions>\n\n'
        '<instructions path="/&quot;b&quot;">\ny\n</instructions>'
    )
