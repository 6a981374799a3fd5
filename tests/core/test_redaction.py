"""What is taken out of what leaves, and what stays."""

import time
from typing import Any

import pytest

from pi_rpc.core.redaction import REPLACED, Redaction

SECRETS = [
    "sk-proj-abcdefghij0123456789",
    "ghp_abcdefghijklmnopqrstuvwx0123",
    "AKIAIOSFODNN7EXAMPLE",
    "xoxb-1234567890-abcdefghij",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\ndef\n-----END OPENSSH PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\ncut off",
    "GOCSPX-abcdefghijklmnopqrstuvwxyz",
    "https://hooks.slack.com/services/T00000000/B00000000/abcdefghijklmnopqrstuvwx",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_known_key_is_taken_out_wherever_it_stands(secret: str) -> None:
    redaction = Redaction()
    assert redaction.text(f"before {secret}") == f"before {REPLACED}"
    assert redaction.count == 1


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abc.def", "Authorization: [redacted]"),
        ("-H 'authorization: Basic dXNlcjpw'", "-H 'authorization: [redacted]'"),
        ("Cookie: a=b; c=d\nAccept: x", "Cookie: [redacted]\nAccept: x"),
        ("export DB_PASSWORD=hunter2hunter", "export DB_PASSWORD=[redacted]"),
        ("AWS_SECRET_ACCESS_KEY = 'wJalrXUt/K7'", "AWS_SECRET_ACCESS_KEY = '[redacted]'"),
        ('{"apiKey":"abcdef123456"}', '{"apiKey":"[redacted]"}'),
        ("refreshToken: abcdefghijk", "refreshToken: [redacted]"),
        ("//registry/:_authToken=abcdefghijk", "//registry/:_authToken=[redacted]"),
        ("postgres://user:pa55word@host/db", "postgres://user:[redacted]@host/db"),
        ("bearer abcdefghijklmnop1234", "bearer [redacted]"),
        # JSON within a string, as commands and what they print have it.
        (r'-d "{\"password\": \"hunter2x\"}"', r'-d "{\"password\": \"[redacted]\"}"'),
        (r"{\\\"apiKey\\\":\\\"abcdef12\\\"}", r"{\\\"apiKey\\\":\\\"[redacted]\\\"}"),
        (r"{\"Authorization\":\"Token abc\"}", r"{\"Authorization\":\"[redacted]\"}"),
        ("gh auth --token abcdefgh", "gh auth --token [redacted]"),
        ("x --db-password 'two words'", "x --db-password '[redacted]'"),
        ("curl -s -u me:pa55word https://x", "curl -s -u me:[redacted] https://x"),
        ("curl --user 'me:pa55word' https://x", "curl --user 'me:[redacted]' https://x"),
        ("machine x login me password pa55word", "machine x login me password [redacted]"),
        ("AccountKey=abcdefghijk==;x", "AccountKey=[redacted];x"),
    ],
)
def test_what_stands_behind_the_name_of_a_secret_is_taken_out(text: str, left: str) -> None:
    redaction = Redaction()
    assert redaction.text(text) == left
    assert redaction.count == 1
    assert redaction.text(left) == left
    assert redaction.count == 1


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=100000, tokens: 12345",
        "author: somebody, monkey = bananas",
        "def f(token: str) -> None: password = os.environ['X']; token = get_token()",
        "the primary key: something else",
        "basic authentication is off",
        "https://host:8080/path@2",
        "docker run -u 1000:1000 --user 1000:1000",
        "pass --token to it, or --password-file name, or --tokens 12",
        "a login with a password protected page",
        "",
    ],
)
def test_other_words_stay(text: str) -> None:
    redaction = Redaction()
    assert redaction.text(text) == text
    assert redaction.count == 0


def test_values_are_searched_through_and_keep_their_form() -> None:
    redaction = Redaction()
    image = {"type": "image", "data": "AKIAIOSFODNN7EXAMPLE", "mimeType": "image/png"}
    value = {"password": "hunter2x", "n": 1, "a": ["sk-abcdefghij0123456789", image, None]}
    assert redaction.value(value) == {"password": REPLACED, "n": 1, "a": [REPLACED, image, None]}
    assert redaction.count == 2
    plain = {"a": [{"b": "words"}], "token": 7}
    assert redaction.value(plain) == plain


def test_what_is_given_stays_as_it_is() -> None:
    value = [{"password": "hunter2x"}]
    assert Redaction().value(value) == [{"password": REPLACED}]
    assert value == [{"password": "hunter2x"}]


@pytest.mark.parametrize("is_list", [True, False])
def test_depth_hides_nothing(is_list: bool) -> None:
    value: Any = {"password": "hunter2x", "n": "AKIAIOSFODNN7EXAMPLE"}
    for _ in range(20_000):
        value = [value] if is_list else {"a": value}
    found = Redaction().value(value)
    for _ in range(20_000):
        found = found[0] if is_list else found["a"]
    assert found == {"password": REPLACED, "n": REPLACED}


def test_off_is_off() -> None:
    redaction = Redaction(is_on=False)
    value = {"password": "hunter2x"}
    assert redaction.value(value) is value
    assert redaction.text(SECRETS[0]) == SECRETS[0]
    assert redaction.count == 0


@pytest.mark.parametrize(
    "piece",
    [
        *("a.", "eyJaaaaaaaaa-", "SG.aaaaaaaaaaaaaaaaaaaa-", "a+", "a_"),
        *("a", "a-", "token", "sk-", "key=", "-----BEGIN A PRIVATE KEY-----", "x://"),
        *("--token ", "curl ", "curl -u ", "\\", 'key\\":\\"', "login a password "),
    ],
)
def test_no_text_makes_it_slow(piece: str) -> None:
    # Everything is looked for: a text that gives no hint of a secret is passed over.
    hints = r"sk- :// --key -u login password \\ bearer cookie "
    text = hints + piece * (100_000 // len(piece))
    begun = time.process_time()
    Redaction().text(text)
    # Linear work takes a hundredth of this; what is tried in all divisions never ends.
    assert time.process_time() - begun < 5
