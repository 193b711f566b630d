"""Targets that misbehave hold a round no longer than the deadline, and no other target at all."""

import time
from multiprocessing import active_children
from urllib.parse import quote

import pytest
from loopback import (
    continues_for_ever,
    drips,
    floods_body,
    floods_headers,
    misbehaving,
    receiver,
    says_nothing,
)

from fabricobs.operate.delivery import Order, send_all

pytestmark = pytest.mark.slow

DEADLINE_S = 12.0


def post(target: str, url: str, *documents: object) -> Order:
    return Order(target, "http", tuple({"url": url, "document": d} for d in documents))


def test_a_bad_target_holds_nobody_beyond_the_deadline() -> None:
    taken: list[str] = []
    with (
        misbehaving(drips) as dripping,
        misbehaving(continues_for_ever) as continuing,
        misbehaving(says_nothing) as silent,
        receiver() as good,
    ):
        orders = [
            post("dripping", dripping, 1),
            post("continuing", continuing, 1),
            post("silent", silent, 1),
            post("good", good.url, 1, 2, 3),
        ]
        began = time.monotonic()
        failures = send_all(orders, DEADLINE_S, taken.append)
        seconds = time.monotonic() - began
    assert [request.document for request in good.requests] == [1, 2, 3]
    assert taken == ["good"] * 3
    assert failures == dict.fromkeys(("dripping", "continuing", "silent"), "not done in 12 s")
    assert seconds < 3 * DEADLINE_S
    assert not active_children(), "the senders are gone"


def test_an_answer_of_any_length_is_not_read() -> None:
    taken: list[str] = []
    with misbehaving(floods_body) as body, misbehaving(floods_headers) as headers:
        orders = [post("body", body, 1), post("headers", headers, 1)]
        failures = send_all(orders, 5 * DEADLINE_S, taken.append)
    assert taken == ["body"], "its status says that it took it"
    assert failures == {"headers": "LineTooLong"}


def test_a_chat_that_floods_ends_its_sender_alone(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("apprise")
    with misbehaving(floods_body) as flooding:
        address = flooding.replace("http://", "json://") + "?format=" + quote("text")
        message = {"urls": (address,), "title": "a", "body": "b", "failed": True}
        failures = send_all([Order("apprise", "chats", (message,))], DEADLINE_S, lambda _: None)
    assert failures
    assert "hunter2" not in str(failures)
    assert capfd.readouterr() == ("", "")
