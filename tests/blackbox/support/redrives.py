"""Redrives over HTTP: dead messages go back, by jobs that tests wait for."""

import time

from brokers import quoted
from patience import PATIENCE_S, Patience


class Redrives:
    """What one user asks of a broker that can redrive."""

    def __init__(self, api, vhost="/", user="guest"):
        self.api, self.vhost, self.user = api, vhost, user

    def ask(self, queue, **fields):
        """The status and the answer of any request."""
        path = "/api/queues/" + quoted(self.vhost, queue) + "/redrive"
        answer = self.api.ask(path, user=self.user, method="POST", body=fields)
        return answer.status, answer.json

    def begin(self, queue, **fields):
        """A job that runs."""
        status, job = self.ask(queue, **fields)
        assert status == 201, (status, job)
        return job

    def dry_run(self, queue, **fields):
        """What it would come to."""
        status, told = self.ask(queue, dry_run=True, **fields)
        assert status == 200, (status, told)
        return told

    def job(self, id):
        """A job as it is now."""
        answer = self.api.ask("/api/redrives/" + id, user=self.user)
        assert answer.status == 200, answer
        return answer.json

    def cancel(self, id):
        """The status."""
        return self.api.ask("/api/redrives/" + id, user=self.user, method="DELETE").status

    def end(self, job, within=PATIENCE_S):
        """A job when it has ended."""
        patience = Patience(within)
        while (job := self.job(job["id"]))["ended_ms"] is None:
            assert not patience.is_over(), job
            time.sleep(0.01)
        return job

    def run(self, queue, **fields):
        """A job from its beginning to its end, which it reaches by itself."""
        job = self.end(self.begin(queue, **fields))
        assert job["state"] == "finished", job
        counts = sum(job[name] for name in ("moved", "skipped", "unroutable", "no_origin", "gone"))
        assert job["scanned"] == counts and job["messages_total"] == counts + job["not_examined"], job
        return job

    def moved(self, queue, **fields):
        """How many messages a job has moved."""
        return self.run(queue, **fields)["moved"]
