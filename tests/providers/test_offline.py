"""Without a script the offline model does what it is asked in plain words."""

import time
from typing import Any

import pytest

from pi_rpc.core.messages import JsonObject
from pi_rpc.providers.offline import answer


def user(text: str) -> JsonObject:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def result(text: str, is_error: bool = False) -> JsonObject:
    content = [{"type": "text", "text": text}]
    return {"role": "toolResult", "content": content, "isError": is_error}


ASKED: JsonObject = {"role": "assistant", "content": [], "stopReason": "toolUse"}


def edit(path: str, old: str, new: str) -> tuple[str, JsonObject]:
    return "edit", {"path": path, "edits": [{"oldText": old, "newText": new}]}


def listed(quoted_path: str) -> tuple[str, JsonObject]:
    return "bash", {"command": f"ls -a -- '{quoted_path}'"}


def write(path: str, content: str) -> tuple[str, JsonObject]:
    return "write", {"path": path, "content": content}


@pytest.mark.parametrize(
    ("words", "name", "args"),
    [
        ("read README.md", "read", {"path": "README.md"}),
        ("Read README", "read", {"path": "README"}),
        ("Please read the file `my notes.md`, and tell me.", "read", {"path": "my notes.md"}),
        ("could you read pyproject.toml?", "read", {"path": "pyproject.toml"}),
        ("Hello! Now show me src/a.py.", "read", {"path": "src/a.py"}),
        ("run `pytest -q`", "bash", {"command": "pytest -q"}),
        ("run the command `ls`, please", "bash", {"command": "ls"}),
        ("Run pytest -q.", "bash", {"command": "pytest -q"}),
        ("write a.txt: hello, then more", *write("a.txt", "hello, then more")),
        ("write notes: hello", *write("notes", "hello")),
        ("create the file b.py with ```python\nprint(1)\n```", *write("b.py", "print(1)\n")),
        ("write `hello` to a.txt", *write("a.txt", "hello")),
        ("write hello world into notes/a.txt.", *write("notes/a.txt", "hello world")),
        ("edit a.txt: replace `a b` with `c`", *edit("a.txt", "a b", "c")),
        ("edit a.txt and replace `a` with ``", *edit("a.txt", "a", "")),
        ("replace `foo bar` by `baz` in src/x.py", *edit("src/x.py", "foo bar", "baz")),
        ("change old to new in x.py.", *edit("x.py", "old", "new")),
        ("list", *listed(".")),
        ("ls", *listed(".")),
        ("list the files", *listed(".")),
        ("List the files in src/", *listed("src/")),
        ("ls it's/", *listed("it'\\''s/")),
    ],
)
def test_a_step_in_words_becomes_a_call(words: str, name: str, args: JsonObject) -> None:
    reply = answer([user(words)])
    assert [(tool.name, tool.args) for tool in reply.tools] == [(name, args)]
    assert reply.text.startswith("I will ")


@pytest.mark.parametrize(
    "words",
    [
        "",
        "hello",
        "What is this?",
        "read the room carefully",
        "write a poem about cats",
        "write it to disk",
        "create a plan: first think",
        "run",
        "run the tests",
        "list all the things we know",
        "consider the risks, then run `rm -r x`",
    ],
)
def test_other_words_get_an_answer_that_says_who_speaks_and_what_can_be_asked(words: str) -> None:
    reply = answer([user(words)])
    assert reply.tools == []
    assert "offline model of pi-rpc" in reply.text
    assert "read README.md" in reply.text


def test_the_answer_to_nothing_at_all_says_who_speaks() -> None:
    assert "offline model" in answer([]).text


STEPS = "read a.md, then run `echo then read x` and then write b.txt: done"


def test_steps_joined_with_then_are_done_one_after_the_other() -> None:
    history = [user("read old.md"), ASKED, result("old"), user(STEPS)]
    called: list[Any] = []
    for _ in range(3):
        [tool] = answer(history).tools
        called.append((tool.name, tool.args))
        history += [ASKED, result(f"result of {tool.name}")]
    assert called == [
        ("read", {"path": "a.md"}),
        ("bash", {"command": "echo then read x"}),
        write("b.txt", "done"),
    ]
    assert answer(history).text == (
        "I read `a.md`. The result:\n\n> result of read\n\n"
        "I ran `echo then read x`. The result:\n\n> result of bash\n\n"
        "I wrote `b.txt`. The result:\n\n> result of write"
    )
    assert answer(history).tools == []


def test_a_failed_step_is_told_and_the_rest_is_left_undone() -> None:
    history = [user(STEPS), ASKED, result("no such file", is_error=True)]
    reply = answer(history)
    assert reply.tools == []
    assert reply.text == (
        "I tried to read `a.md`, but it failed. The tool said:\n\n> no such file\n\n"
        "So I did not run `echo then read x`, nor write `b.txt`."
    )


def test_a_result_without_text_is_said_to_be_empty() -> None:
    assert answer([user("read a.md"), ASKED, result("")]).text == (
        "I read `a.md`. The result was empty."
    )


def test_a_long_result_is_quoted_in_part() -> None:
    many_lines = answer([user("read a.md"), ASKED, result("line\n" * 100)]).text
    assert many_lines.count("> line") == 6
    assert many_lines.endswith("> …")
    long_line = answer([user("read a.md"), ASKED, result("x" * 10_000)]).text
    assert len(long_line) < 500


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        (["read", "bash"], ("bash", {"command": "ls -a -- 'src'"})),
        (["bash", "ls"], ("ls", {"path": "src"})),
        ([], ("bash", {"command": "ls -a -- 'src'"})),
    ],
)
def test_a_folder_is_listed_with_the_tool_that_is_there(tools: list[str], expected: Any) -> None:
    system = {"role": "system", "content": "", "toolsAdded": [{"name": name} for name in tools]}
    [tool] = answer([system, user("list src")]).tools
    assert (tool.name, tool.args) == expected


@pytest.mark.parametrize("verb", ["", "write ", "run ", "read ", "list ", "edit ", "replace "])
@pytest.mark.parametrize("fill", [" ", ".", "a", "`", "```", '"', " then", " in", ": ", "to a"])
def test_no_words_take_long_to_understand(verb: str, fill: str) -> None:
    words = verb + fill * (20_000 // len(fill)) + " x y"
    began = time.process_time()
    answer([user(words)])
    # Linear work takes milliseconds, quadratic work took seconds.
    assert time.process_time() - began < 1
