"""The scripts of the core, played over sockets.

`script_lines.Section.why_not` leaves out sections that need more than a socket. A section in which RabbitMQ differs says so by
a line below its title: `# RabbitMQ differs: REASON`, and it must fail there, or `# RabbitMQ may differ: REASON`, where chance
decides.
"""

import re

import pytest

import script_driver
import script_lines

DIFFERING_PATIENCE_S = 1.0
WRONG_PATIENCE_S = 0.3
OWN = re.compile(  # what RabbitMQ does not know at all
    r"amq\.(settle|schedule)|x-expiry-order|x-delivery-limit-(action|count)|x-delayed-retry-order|x-opt-delivery|x-delayed-message"
    r"|x-federation-upstream|declare (?!.*quorum).*x-delivery-limit"
)


SECTIONS = script_lines.sections()
PLAYED = [section for section in SECTIONS if section.why_not() is None]


def test_sections_are_left_out_for_known_reasons():
    """`python support/script_lines.py` counts them."""
    assert len(PLAYED) > len(SECTIONS) / 2
    assert {section.why_not() for section in SECTIONS} - {None} == set(script_lines.REASONS)


@pytest.mark.parametrize("section", [pytest.param(each, id=f"{each.file}-{each.title}") for each in PLAYED])
def test_a_section_has_its_effects_over_a_socket(section, client, made):
    driver = script_driver.ScriptDriver(client, made)
    if client.broker.name == "rabbitmq":
        if section.may_differ or any(map(OWN.search, section.lines)):
            pytest.skip(section.may_differ or "of Leveret alone")
        if section.differs:
            driver.patience_s = DIFFERING_PATIENCE_S
            with pytest.raises(AssertionError):
                driver.play(section)
            return
    driver.play(section)


WRONG = {
    "deliveries in another order": """
publish - q a
publish - q b
consume q t
  basic.consume-ok t
  deliver t #1 "b" from -/q
  deliver t #2 "a" from -/q
""",
    "no mark of a redelivery": """
publish - q a
get q
  get-ok #1 "a" from -/q left=0
nack 1 requeue
get q
  get-ok #2 "a" from -/q left=0
""",
    "another reply code": """
declare nobody passive
  channel.close 403 NOT_FOUND - no queue 'nobody' in vhost '/'
""",
    "a delivery too many": """
consume q t
  basic.consume-ok t
publish - q a
""",
    "a delivery too many on another connection": """
w: consume q t
  w: basic.consume-ok t
publish - q a
""",
    "a delivery that does not come": """
publish - q a
  deliver t #1 "a" from -/q
""",
    "a confirm that does not come": """
publish - q a
  confirm ack 1
""",
    "a confirm too many": """
confirm-select
  confirm.select-ok
publish - q a
""",
    "a nack instead of an ack": """
confirm-select
  confirm.select-ok
publish - q a
  confirm nack 1
""",
    "the other connection": """
consume q t
  basic.consume-ok t
w: publish - q a
  w: deliver t #1 "a" from -/q
""",
    "another count": """
publish - q a
show q
  q: ready=2
""",
    "another property": """
publish - q a message-id=m
get q
  get-ok #1 "a" from -/q message-id=n left=0
""",
    "another type of a header": """
publish - q a h=l:5
get q
  get-ok #1 "a" from -/q {h=5} left=0
""",
    "a connection that stays": """
declare q
  queue.declare-ok q messages=0 consumers=0
  connection: connection.close 504 CHANNEL_ERROR - second 'channel.open' seen
""",
}


@pytest.mark.parametrize("what", WRONG)
def test_a_script_that_says_something_else_fails(client, made, what):
    text = f"== {what}\ndeclare q\n  queue.declare-ok q messages=0 consumers=0{WRONG[what]}"
    [section] = script_lines.read("wrong", text)
    with pytest.raises(AssertionError):
        script_driver.ScriptDriver(client, made, WRONG_PATIENCE_S).play(section)
