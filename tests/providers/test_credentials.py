"""Keys: where they are found, in which order, and that they are never told."""

import logging
import os
import pickle
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from pi_rpc.core.errors import Refused
from pi_rpc.providers.commands import Commands
from pi_rpc.providers.credentials import Credentials
from pi_rpc.providers.jsonc import decoded
from pi_rpc.providers.known import Door
from pi_rpc.providers.secret import Secret, hidden
from pi_rpc.providers.values import missing_in, text_of
from tests.providers.streams import model_of

PATH = {"PATH": os.environ["PATH"]}
DOOR = Door("test", variables=("TEST_KEY",), bearer_variables=("TEST_TOKEN",))
MODEL = model_of("anthropic-messages")


def stored(tmp_path: Path, **keys: Any) -> Path:
    path = tmp_path / "auth.json"
    path.write_bytes(msgspec.json.encode(keys))
    path.chmod(0o600)
    return path


async def key_of(credentials: Credentials, door: Door = DOOR) -> str | None:
    access = await credentials.access(door, MODEL)
    return None if access.key is None else access.key.reveal()


@pytest.mark.anyio
async def test_of_several_places_the_first_holds(tmp_path: Path) -> None:
    door = msgspec.structs.replace(DOOR, api_key="of-models")
    environment = {"TEST_KEY": "of-variable", "TEST_TOKEN": "of-token"}
    auth = stored(tmp_path, test={"type": "api_key", "key": "of-auth"})
    given = Credentials(auth, environment, {"test": "given"})
    assert await key_of(given, door) == "given"
    assert await key_of(Credentials(auth, environment), door) == "of-auth"
    none = tmp_path / "none.json"
    assert await key_of(Credentials(none, environment), door) == "of-models"
    assert await key_of(Credentials(none, environment)) == "of-variable"
    del environment["TEST_KEY"]
    token = await Credentials(none, environment).access(DOOR, MODEL)
    assert token.as_bearer and token.key is not None and token.key.reveal() == "of-token"


@pytest.mark.anyio
async def test_without_a_key_it_says_why_and_refuses(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path / "auth.json", {})
    why_not = credentials.why_not(DOOR)
    assert why_not is not None and "TEST_KEY or TEST_TOKEN is not set" in why_not
    with pytest.raises(Refused) as refused:
        await credentials.access(DOOR, MODEL)
    assert refused.value.reason == "no_key"
    missing = msgspec.structs.replace(DOOR, api_key="$NOT_THERE")
    assert "NOT_THERE is not set" in str(credentials.why_not(missing))
    own = Door("mine", needs_key=False)
    assert credentials.why_not(own) is None
    assert await key_of(credentials, own) is None


LOGIN = {"type": "oauth", "access": "secret-token", "refresh": "secret-other"}


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (LOGIN, "holds a login for it, and only API keys can be used"),
        (LOGIN | {"expires": 0}, "holds a login for it (expired 1970-01-01 00:00 UTC), and"),
        (LOGIN | {"expires": 32503680000000}, "(valid until 3000-01-01 00:00 UTC), and only"),
        (LOGIN | {"expires": "secret-soon"}, "holds a login for it, and"),
        ({"type": "secret-kind", "key": "secret-key"}, "of no known type"),
        ("secret-key", "of no known type"),
        ({"type": "api_key"}, "has no key"),
        ({"type": "api_key", "key": "$NOT_THERE"}, "NOT_THERE is not set, which its entry in"),
    ],
)
def test_an_entry_that_cannot_be_used_is_told_and_not_quoted(
    tmp_path: Path, entry: Any, told: str
) -> None:
    why_not = str(Credentials(stored(tmp_path, test=entry), {}).why_not(DOOR))
    assert told in why_not
    assert "TEST_KEY or TEST_TOKEN is not set" in why_not
    assert "secret" not in why_not


@pytest.mark.anyio
async def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    auth = tmp_path / "auth.json"
    credentials = Credentials(auth, {})
    assert credentials.why_not(DOOR) is not None
    stored(tmp_path, test={"type": "api_key", "key": "one"})
    assert await key_of(credentials) == "one"
    auth.unlink()
    stored(tmp_path, test={"type": "api_key", "key": "another"})
    assert await key_of(credentials) == "another"


def test_a_damaged_file_is_told_of_and_not_quoted(tmp_path: Path) -> None:
    auth = tmp_path / "auth.json"
    auth.write_text('{"test": {"type": "api_key", "key": "sk-leaky"')
    auth.chmod(0o644)
    credentials = Credentials(auth, {})
    found = credentials.diagnostics()
    assert [one.reason for one in found] == ["file_left_out", "auth_file_open_to_others"]
    assert all(one.path == str(auth) for one in found)
    assert "sk-leaky" not in repr(found)
    assert credentials.why_not(DOOR) is not None


@pytest.mark.parametrize("raw", [b"[]", b"\xff", b"[" * 100_000, b"3"])
def test_a_file_that_is_no_object_is_left_out(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "auth.json").write_bytes(raw)
    (tmp_path / "auth.json").chmod(0o600)
    [found] = Credentials(tmp_path / "auth.json", {}).diagnostics()
    assert found.reason == "file_left_out"


VALUES = [
    ("plain", "plain"),
    ("$HOME", "/h"),
    ("a-${HOME}-b", "a-/h-b"),
    ("$$lit$!z", "$lit!z"),
    ("$$HOME", "$HOME"),
    ("5$", "5$"),
    ("$MISSING", None),
    ("${MISSING}x", None),
    ("$EMPTY", None),
    ("${}", "${}"),
]


@pytest.mark.parametrize(("value", "meant"), VALUES)
def test_a_value_may_name_variables(value: str, meant: str | None) -> None:
    environment = {"HOME": "/h", "EMPTY": ""}
    assert text_of(value, environment) == meant
    assert bool(missing_in(value, environment)) is (meant is None)


@pytest.mark.anyio
async def test_a_value_may_be_what_a_command_prints(tmp_path: Path) -> None:
    auth = stored(
        tmp_path, test={"type": "api_key", "key": '!echo " $OWN "', "env": {"OWN": "sk-printed"}}
    )
    credentials = Credentials(auth, PATH)
    assert credentials.why_not(DOOR) is None
    assert await key_of(credentials) == "sk-printed"


@pytest.mark.anyio
@pytest.mark.parametrize("command", ["exit 3", "true", "yes", "echo x; exit 1", "nosuchcommand"])
async def test_a_command_that_gives_no_key_is_said_to_give_none(
    tmp_path: Path, command: str
) -> None:
    door = msgspec.structs.replace(DOOR, api_key=f"!{command}")
    credentials = Credentials(tmp_path / "auth.json", PATH)
    with pytest.raises(Refused) as refused, anyio.fail_after(5):
        await credentials.access(door, MODEL)
    assert refused.value.reason == "no_key"


@pytest.mark.anyio
async def test_a_slow_command_is_ended_with_its_children(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    commands = Commands(limit_s=0.2)
    with anyio.fail_after(5):
        command = f"sleep 60 & echo $! > {told}; wait"
        assert await commands.printed(command, PATH) is None
        child = int(told.read_text())
        while is_running(child):
            await anyio.lowlevel.checkpoint()


def is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.anyio
async def test_a_command_runs_once_for_many_who_ask(tmp_path: Path) -> None:
    log = tmp_path / "log"
    commands = Commands()
    command = f"echo run >> {log}; echo key"
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(commands.printed, command, PATH)
        assert log.read_text().split() == ["run"]
        commands.forget()
        await commands.printed(command, PATH)
        assert log.read_text().split() == ["run", "run"]
        await Commands(kept_s=0).printed(command, PATH)
        assert len(log.read_text().split()) == 3


@pytest.mark.anyio
async def test_headers_have_the_syntax_of_keys(tmp_path: Path) -> None:
    headers = {"X-Home": "$HOME", "X-Lit": "$$lit$!z", "X-Said": "!echo said"}
    credentials = Credentials(tmp_path / "auth.json", {**PATH, "HOME": "/h", "TEST_KEY": "k"})
    access = await credentials.access(DOOR, model_of("anthropic-messages", headers=headers))
    assert {name: value.reveal() for name, value in access.headers.items()} == {
        "X-Home": "/h",
        "X-Lit": "$lit!z",
        "X-Said": "said",
    }
    missing = model_of("anthropic-messages", headers={"X-No": "$NOT_THERE"})
    with pytest.raises(Refused, match="X-No"):
        await credentials.access(DOOR, missing)


@pytest.mark.anyio
async def test_a_key_is_in_no_text_made_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    credentials = Credentials(tmp_path / "auth.json", {"TEST_KEY": "sk-secret"}, {"o": "sk-secret"})
    access = await credentials.access(DOOR, MODEL)
    assert access.key is not None
    told = f"{access!r} {access} {access.key} {access.key!r} {[access.key]} {access.secrets}"
    logging.getLogger("test").info("%s %r", access, access.key)
    assert "sk-secret" not in told + caplog.text
    with pytest.raises(TypeError):
        pickle.dumps(access.key)
    with pytest.raises(TypeError):
        msgspec.json.encode(access.key)
    assert hidden("bad key sk-secret!", access.secrets) == "bad key [key]!"
    assert hidden("an a", [Secret("a")]) == "an a"


JSONC = [
    (b'{"a": 1, // one\n "b": [1, 2,], /* more */ }', {"a": 1, "b": [1, 2]}),
    (b'\xef\xbb\xbf{"url": "http://x/*y*/", "c": "a,]"}', {"url": "http://x/*y*/", "c": "a,]"}),
    (b'["\\"//"]', ['"//']),
    (b"[1, // last\n]", [1]),
]


@pytest.mark.parametrize(("raw", "value"), JSONC)
def test_comments_and_trailing_commas_are_passed_over(raw: bytes, value: Any) -> None:
    assert decoded(raw) == value


@pytest.mark.parametrize("raw", [b"{bad", b"", b'{"a": 1} x', b"/*"])
def test_what_is_no_json_is_said_to_be_none(raw: bytes) -> None:
    with pytest.raises(ValueError):
        decoded(raw)


def test_a_mistake_is_found_by_its_line() -> None:
    with pytest.raises(ValueError, match="line 3"):
        decoded(b'{\n// comment\n"a": oops}')


def test_odd_texts_are_read_in_little_time() -> None:
    with pytest.raises(ValueError):
        decoded(b'"' + b"\\" * 200_001)
    assert decoded(b"[" + b" " * 200_000 + b"]") == []
    assert decoded(b"[1" + b" " * 200_000 + b",2]") == [1, 2]
