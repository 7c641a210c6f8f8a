"""The judges see what they must: each history here has one fault, and the same without it has none."""

import types

import pytest

import ledger
from delays import Delays
from forged import Forged, body
from ledger import BRIEF, DEAD, HOLD, WORK, Fault, Ledger, check, check_death
from pairs import LEFT, RIGHT, SOURCE, Pairs, check_pairs
from rounds import WAIT, Rounds, check_rounds
from rounds import WORK as ROUNDS

LATER = "crash.later.quorum"
MINUTE_MS = 60_000


@pytest.fixture
def broker():
    return Forged()


class Told:
    """A ledger with one message in each queue, and a broker that has what it must have."""

    def __init__(self):
        self.broker, self.ledger, publisher = Forged(), Ledger(), object()
        self.first, self.second = (self.ledger.new(HOLD, publisher) for _ in range(2))
        self.worked = self.ledger.new(WORK, publisher)
        self.brief = self.ledger.new(BRIEF, publisher, 1)
        for message in self.ledger.messages.values():
            message.confirmed = True
        self.message(self.worked).settled = self.message(self.worked).settling = "ack"
        self.broker.put(HOLD, body(self.first))
        self.broker.put(HOLD, body(self.second))
        self.broker.put(DEAD, body(self.brief), [(BRIEF, "expired", 1)])

    def message(self, number):
        return self.ledger.messages[number]

    def check(self):
        return check(self.broker, self.ledger)


@pytest.fixture
def told():
    return Told()


def refuses(what, judge, *arguments):
    with pytest.raises(Fault, match=what):
        judge(*arguments)


def test_whole_history(told):
    assert told.check() == {"confirmed": 4, "settled": 1}


def test_lost(told):
    told.broker.queues[HOLD].pop()
    refuses("confirmed message 2 of crash.hold is lost", told.check)


def test_doubled(told):
    told.broker.put(HOLD, body(told.second))
    refuses("message 2 of crash.hold is there 2 times", told.check)


def test_source_and_target(told):
    told.broker.put(HOLD, body(told.brief))
    told.message(told.brief).queue = HOLD
    refuses("has the deaths|is there 2 times", told.check)


def test_settled_again(told):
    told.broker.put(WORK, body(told.worked), redelivered=True)
    refuses("message 3 is back after its acknowledgement was durable", told.check)


def test_order(told):
    told.broker.queues[HOLD].reverse()
    refuses("message 1 comes from crash.hold behind message 2 of the same publisher", told.check)


def test_order_of_two_publishers(told):
    told.broker.queues[HOLD].reverse()
    told.message(told.second).publisher = object()
    told.check()


def test_mark(told):
    told.message(told.first).seen.add(HOLD)
    refuses("comes without the mark", told.check)


def test_changed(told):
    told.broker.queues[HOLD].clear()
    told.broker.put(HOLD, body(told.first).replace(b"payload", b"payl0ad"))
    refuses("a message has changed", told.check)


def test_invented(told):
    told.broker.put(HOLD, body(99))
    refuses("nobody published", told.check)


def test_outlived(told, monkeypatch):
    monkeypatch.setattr(ledger, "EXPIRED_WITHIN_S", 0.3)
    told.broker.put(BRIEF, body(told.brief))
    refuses("outlived their TTL", told.check)


@pytest.mark.parametrize("deaths", [
    [(BRIEF, "expired", 2)], [(BRIEF, "rejected", 1)], [(HOLD, "expired", 1)],
    [(BRIEF, "expired", 1), (DEAD, "expired", 1)], []])
def test_deaths(told, deaths):
    told.broker.queues[DEAD].clear()
    told.broker.put(DEAD, body(told.brief), deaths)
    refuses("has the deaths|is dead without x-death", told.check)


def test_dead_early(broker):
    ledger = Ledger()
    number = ledger.new(BRIEF, ttl_ms=MINUTE_MS)
    broker.put(DEAD, body(number), [(BRIEF, "expired", 1)])
    _, properties, _ = broker.basic_get(DEAD)
    refuses("ms early", check_death, ledger, number, properties)


def test_ack_and_reject_without_an_answer(told):
    told.message(told.worked).settled = None
    told.message(told.worked).attempt("reject")
    told.check()


def delivery(redelivered=False):
    return types.SimpleNamespace(redelivered=redelivered)


def arrive(delays, queue, number, redelivered=False, **options):
    properties, body_of = types.SimpleNamespace(headers={}), f"{number}:0:".encode()
    return delays.arrived(queue, delivery(redelivered), properties, body_of, **options)


def test_delivery_early():
    delays = Delays()
    number, _ = delays.new((LATER,), MINUTE_MS)
    refuses("ms early", arrive, delays, LATER, number)


def test_released_twice():
    delays = Delays(marks=False)
    number, _ = delays.new((LATER,), 0)
    arrive(delays, LATER, number)
    arrive(delays, LATER, number, redelivered=True)
    refuses("released to .* twice", arrive, delays, LATER, number)


@pytest.mark.parametrize("known", ["settled", "is_cancelled"])
def test_back_in_a_classic_queue(known):
    queue = "crash.later.classic"
    delays = Delays(marks=False)
    number, [place] = delays.new((queue,), 0)
    setattr(place, known, True)
    arrive(delays, queue, number)
    refuses("back in|cancellation", lambda: arrive(delays, queue, number, is_final=True))


def pair(pairs, kind):
    number, known = pairs.new(kind)
    known.confirmed = True
    return number


def test_pairs(broker):
    pairs = Pairs()
    fan_out, death = pair(pairs, "fan-out"), pair(pairs, "death")
    for queue in (LEFT, RIGHT):
        broker.put(queue, str(fan_out))
        broker.put(queue, str(death), [(SOURCE, "expired", 1)])
    assert check_pairs(broker, pairs) == 2


@pytest.mark.parametrize(("left", "right", "what"), [
    (1, 0, "is in split.left only"), (0, 1, "is in split.right only"), (0, 0, "is lost"),
    (2, 2, "there 2 and 2 times")])
def test_half_a_pair(broker, left, right, what):
    pairs = Pairs()
    number = pair(pairs, "fan-out")
    for queue, count in ((LEFT, left), (RIGHT, right)):
        for _ in range(count):
            broker.put(queue, str(number))
    refuses(what, check_pairs, broker, pairs)


def test_rolled_back_pair(broker):
    pairs = Pairs()
    number, known = pairs.new("transaction")
    known.rolled_back = True
    for queue in (LEFT, RIGHT):
        broker.put(queue, str(number))
    refuses("was rolled back", check_pairs, broker, pairs)


def test_pair_with_two_deaths(broker):
    pairs = Pairs()
    number = pair(pairs, "death")
    broker.put(LEFT, str(number), [(SOURCE, "expired", 2)])
    refuses("has the deaths", check_pairs, broker, pairs)


def test_pair_early(broker):
    pairs = Pairs()
    number, _ = pairs.new("death", MINUTE_MS)
    broker.put(LEFT, str(number), [(SOURCE, "expired", 1)])
    refuses("before its time to live is over", check_pairs, broker, pairs)


def put_round(broker, number, rejected, expired):
    deaths = [(ROUNDS, "rejected", rejected), (WAIT, "expired", expired)] if rejected or expired else ()
    broker.put(ROUNDS, str(number), deaths)


@pytest.fixture
def rejected_twice():
    """A message that was rejected twice: once certainly, once without an answer."""
    rounds = Rounds()
    number, message = rounds.new()
    message.confirmed, message.rejected, message.rejects = True, 1, 2
    return rounds, number


@pytest.mark.parametrize("count", [1, 2])
def test_rounds(broker, rejected_twice, count):
    rounds, number = rejected_twice
    put_round(broker, number, count, count)
    assert check_rounds(broker, rounds) == 1


@pytest.mark.parametrize(("counts", "what"), [
    ((0, 0), "has 0 rounds behind it"), ((3, 3), "has 3 rounds behind it"), ((2, 1), "has the deaths")])
def test_rounds_miscounted(broker, rejected_twice, counts, what):
    rounds, number = rejected_twice
    put_round(broker, number, *counts)
    refuses(what, check_rounds, broker, rounds)


def test_round_early(broker, rejected_twice):
    rounds, number = rejected_twice
    rounds.messages[number].not_before_ns = 1 << 62
    put_round(broker, number, 1, 1)
    refuses("ms early", check_rounds, broker, rounds)


def test_round_lost_or_doubled(broker, rejected_twice):
    rounds, number = rejected_twice
    refuses("is lost", check_rounds, broker, rounds)
    for _ in range(2):
        put_round(broker, number, 1, 1)
    refuses("is in split.work twice", check_rounds, broker, rounds)


def test_round_settled_again(broker, rejected_twice):
    rounds, number = rejected_twice
    rounds.messages[number].settled = True
    put_round(broker, number, 1, 1)
    refuses("back in split.work", check_rounds, broker, rounds)
