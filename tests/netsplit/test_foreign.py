"""What programs of other languages say, forged by shells, and the judge."""

import random
import time
from types import SimpleNamespace

import pytest

from foreign import Program
from ledger import Fault

WITHIN_S = 60.0
SILENCE_S = 0.3
LAST = "nothing more"
TLS = SimpleNamespace(ports={"a": 1}, authority=SimpleNamespace(file="ca.pem"))


@pytest.fixture
def program():
    """`program("sent 1", "confirmed 1")`: one that says this, and `done` when it is asked to stop."""
    begun = []

    def begin(*lines, done="done"):
        said = "; ".join(f"echo {line}" for line in lines)
        begun.append(Program("sh", ["sh", "-c", f"{said}; read order; echo {done}; echo {LAST}; cat"], TLS, random.Random(1)))
        begun[-1].ask_to_stop()
        return begun[-1]

    yield begin
    for one in begun:
        one.end()


def judge(program):
    return program.judge(time.monotonic() + WITHIN_S)


def judge_what_was_said(program):
    """Once all of it has been read: nothing more comes."""
    deadline = time.monotonic() + WITHIN_S
    while not any(LAST in line for line in program.rest):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return program.judge(time.monotonic() + SILENCE_S)


def test_confirmed_messages_that_arrive_are_counted(program):
    assert judge(program("sent 0", "confirmed 0", "got 0", "sent 1", "confirmed 1", "got 1", "got 1", "sent 2")) == 2


def test_confirmed_message_that_does_not_arrive_is_lost(program):
    with pytest.raises(Fault, match=r"confirmed and not delivered \[1\] of 1"):
        judge_what_was_said(program("sent 0", "confirmed 0", "got 0", "sent 1", "confirmed 1"))


def test_message_that_nobody_sent_is_invented(program):
    with pytest.raises(Fault, match=r"never sent: \[7\]"):
        judge(program("sent 0", "confirmed 0", "got 0", "got 7"))


def test_program_that_does_not_come_back_is_a_fault(program):
    with pytest.raises(Fault, match="done False.*it said: why"):
        judge_what_was_said(program("sent 0", "why", done="not yet"))


def test_program_that_ends_is_a_fault(program):
    ended = program("sent 0", "confirmed 0", done="over; exit 3")
    with pytest.raises(Fault, match="has ended: over"):
        judge(ended)


def test_last_words_that_are_read_after_the_end_are_told(program):
    ended = program("sent 0", "confirmed 0", done="first; (sleep 0.3; echo last) & exit 3")
    with pytest.raises(Fault, match="has ended: first\nlast"):
        judge(ended)
