"""Users, permissions and vhosts change while the broker is killed: what was answered is there afterwards, and what was
not answered is there as a whole or not at all."""

import random
import threading
import time

import pytest

from brokers import quoted
from made import EVERYTHING


class Ledger:
    """What one worker has been answered: for each path what must be there, or a set of what may be."""

    def __init__(self, number):
        self.number, self.known, self.doubtful = number, {}, {}

    def change(self, api, dice):
        """Put or remove one of a few things of its own."""
        name = f"w{self.number}-{dice.randrange(4)}"
        path, body = dice.choice([
            ("/api/users/" + name, {"password_hash": "", "tags": [str(dice.randrange(1000))]}),
            ("/api/vhosts/" + name, {"description": str(dice.randrange(1000))}),
            ("/api/permissions/" + quoted("/", name), EVERYTHING | {"read": str(dice.randrange(1000))}),
        ])
        method, shown = dice.choice([("PUT", body), ("PUT", body), ("DELETE", None)])
        before = self.known.get(path)
        self.doubtful[path] = [before, shown]
        answer = api.ask(path, method=method, body=body if method == "PUT" else None)
        del self.doubtful[path]
        if answer.status in (201, 204):
            self.known[path] = shown
        else:
            assert answer.status in (400, 404), answer
            assert before is None or "permissions" in path
        if path.startswith("/api/users/") and method == "DELETE":
            self.known.pop("/api/permissions/" + quoted("/", name), None)

    def work(self, api, seed):
        """Change things until the broker is gone."""
        dice = random.Random(seed)
        try:
            while True:
                self.change(api, dice)
        except OSError:
            pass  # it was killed

    def check(self, api):
        """Hold what is there against what was answered, and go on from it."""
        for path in self.known.keys() | self.doubtful.keys():
            answer = api.ask(path)
            is_there = answer.json if answer.status == 200 else None
            allowed = self.doubtful.get(path, [self.known.get(path)])
            doubted_user = "permissions" in path and "/api/users/" + path.rsplit("/")[-1] in self.doubtful
            if doubted_user:
                allowed = [*allowed, None]
            assert any(matches(shown, is_there) for shown in allowed), (path, allowed, is_there)
            self.known[path] = None if is_there is None else {key: is_there[key] for key in allowed_keys(path)}
        self.doubtful.clear()


def allowed_keys(path):
    return {"users": ["tags"], "vhosts": ["description"], "permissions": ["read"]}[path.split("/")[2]]


def matches(shown, is_there):
    if shown is None or is_there is None:
        return shown is is_there
    return all(is_there[key] == value for key, value in shown.items() if key in is_there)


def test_answered_changes_survive_kills(under):
    """Leveret's alone: a RabbitMQ that runs already is not killed."""
    if under.name != "leveret":
        pytest.skip("it belongs to somebody else")
    broker = under.start()
    ledgers = [Ledger(number) for number in range(4)]
    try:
        for life in range(4):
            workers = [threading.Thread(target=ledger.work, args=(broker.api, life * 10 + ledger.number))
                       for ledger in ledgers]
            for worker in workers:
                worker.start()
            time.sleep(0.3 + 0.17 * life)  # how far they get is up to chance; what holds is not
            broker.process.kill()
            for worker in workers:
                worker.join()
            broker.kill_and_start_again()
            for ledger in ledgers:
                ledger.check(broker.api)
        assert sum(len(ledger.known) for ledger in ledgers) > 10
        listed = {vhost["name"] for vhost in broker.api.ask("/api/vhosts").json}
        folders = list((broker.directory / "data" / "vhosts").iterdir())
        assert len(folders) <= len(listed) + len(ledgers), "what is gone leaves nothing but a crash's own"
    finally:
        broker.stop()
