"""Celery with real workers, through the scenarios of its own; ../../README.md says what each does."""

import contextlib
import datetime
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import celery
from celery.exceptions import TaskRevokedError
from kombu import Connection, Queue
from kombu.transport.native_delayed_delivery import declare_native_delayed_delivery_exchanges_and_queues

import celery_app
import expected
import runner
from celery_app import add, divide, fail_until, hold, reject, tell_times

URL = f"pyamqp://guest:guest@{runner.HOST}:{runner.PORT}//"
READY_WITHIN_S = 60.0
DONE_WITHIN_S = 60.0
QUORUM = {"x-queue-type": "quorum"}


class Scenario:
    """A queue, an application that sends to it, and a folder where tasks note what they do."""

    def __init__(self, folder, **settings):
        self.queue = runner.unique()
        self.folder = Path(folder)
        self._settings = {"url": URL, "queue": self.queue, "folder": folder, **settings}
        self.app = celery_app.make(**self._settings)
        self.app.set_current()

    @contextlib.contextmanager
    def worker(self, *options, pool="threads", concurrency=1):
        """A worker that consumes the queue."""
        log = self.folder / f"worker-{len(list(self.folder.glob('worker-*')))}.log"
        command = [sys.executable, "-m", "celery", "-A", "celery_app", "worker", "--loglevel", "INFO", "--pool", pool,
                   "--concurrency", str(concurrency), "--hostname", f"{log.stem}@{self.queue}", *options]
        environment = {**os.environ, celery_app.SETTINGS: json.dumps(self._settings)}
        with log.open("w") as output:
            process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True)
        try:
            wait_until(lambda: " ready." in log.read_text() or process.poll() is not None, "the worker is ready",
                       READY_WITHIN_S)
            yield process
        except BaseException:
            print(log.read_text(), flush=True)
            raise
        finally:
            kill(process)

    def stop(self, process):
        """A warm shutdown by remote control: nothing stays unacknowledged."""
        self.app.control.shutdown()
        assert process.wait(DONE_WITHIN_S) == 0, process.returncode

    def release(self):
        """Let the tasks end that hold."""
        (self.folder / "released").touch()

    def runs(self):
        """The tasks that ran, in order, as pairs of their name and the process."""
        file = self.folder / "runs"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def names(self):
        return [name for name, _ in self.runs()]

    def active(self):
        """Names of the tasks that the worker has begun and not ended; None when it does not answer."""
        answer = self.app.control.inspect(timeout=1, limit=1).active()
        return answer and [task["name"] for tasks in answer.values() for task in tasks]

    def waiting(self):
        """How many messages wait in the queue."""
        with self.app.connection_for_read() as connection:
            return connection.default_channel.queue_declare(self.queue, passive=True).message_count


def kill(process):
    """A worker and the processes of its pool, at once."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_until(holds, what, within_s=DONE_WITHIN_S):
    """Wait until it holds."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {within_s:.0f} s: {what}"
        time.sleep(celery_app.POLL_S)


@contextlib.contextmanager
def scenario(**settings):
    with tempfile.TemporaryDirectory(prefix="interop-celery-") as folder:
        opened = Scenario(folder, **settings)
        try:
            yield opened
        finally:
            opened.app.close()


def results(**settings):
    """The results of a worker as Celery starts it: processes, gossip, mingle, events, remote control."""
    with scenario(**settings) as opened, opened.worker(pool="prefork", concurrency=2):
        assert add.delay("first", 2, 3).get(timeout=DONE_WITHIN_S) == 5
        many = celery.group(add.s("many", number, number) for number in range(20))()
        assert many.get(timeout=DONE_WITHIN_S) == [2 * number for number in range(20)]
        try:
            divide.delay(1, 0).get(timeout=DONE_WITHIN_S)
            raise AssertionError("the task's exception did not come back")
        except ZeroDivisionError:
            pass
        (answer,) = opened.app.control.ping(timeout=1, limit=1)
        assert answer == {f"worker-0@{opened.queue}": {"ok": "pong"}}, answer
        assert opened.names().count("first") == 1 and opened.names().count("many") == 20


def connect():
    results()


def tls():
    url = f"pyamqp://guest:guest@{runner.HOST}:{runner.TLS_PORT}//"
    results(url=url, broker_use_ssl={"ca_certs": runner.CA_FILE, "cert_reqs": int(ssl.CERT_REQUIRED),
                                     "server_hostname": runner.HOST})


def prefetch():
    with scenario(worker_prefetch_multiplier=2, task_acks_late=True) as opened:
        sent = [hold.delay(f"hold-{number}") for number in range(10)]
        with opened.worker("--without-mingle", concurrency=2) as worker:
            wait_until(lambda: len(opened.runs()) == 2, "two tasks run")
            assert opened.waiting() == 6, opened.waiting()  # two run, two more were taken
            opened.release()
            assert {result.get(timeout=DONE_WITHIN_S) for result in sent} == {f"hold-{number}" for number in range(10)}
            # A result may arrive before its task is acknowledged, and a worker that stops then never does it.
            wait_until(lambda: opened.active() == [], "all tasks are acknowledged")
            opened.stop(worker)
        assert sorted(opened.names()) == [f"hold-{number}" for number in range(10)], opened.names()
        assert opened.waiting() == 0


def acks_late():
    late = {"task_acks_late": True, "task_reject_on_worker_lost": True, "worker_prefetch_multiplier": 1,
            "worker_lost_wait": 0.2}
    with scenario(**late) as opened:
        hold.delay("killed")
        others = [f"other-{number}" for number in range(10)]
        for name in others:
            add.delay(name, 1, 1)
        with opened.worker("--without-mingle", pool="prefork") as worker:
            wait_until(lambda: len(opened.runs()) == 1, "the task runs")
            os.kill(int(opened.runs()[0][1]), signal.SIGKILL)  # a process of the pool: the worker sends the task back
            wait_until(lambda: opened.names().count("killed") == 2, "the task runs again")
            kill(worker)  # all of it: the broker has the task again
        with opened.worker("--without-mingle") as worker:
            wait_until(lambda: opened.names().count("killed") == 3, "the task runs in another worker")
            opened.release()
            wait_until(lambda: set(others) <= set(opened.names()), "all tasks run")
            opened.stop(worker)
        assert opened.waiting() == 0
        assert sorted(opened.names()) == sorted(others + 3 * ["killed"]), opened.names()


def retry():
    with scenario() as opened, opened.worker("--without-mingle"):
        began = time.monotonic()
        third, never = fail_until.delay("third", 3), fail_until.delay("never", 9)
        assert third.get(timeout=DONE_WITHIN_S) == 3
        assert time.monotonic() - began >= 2 * 0.3
        try:
            never.get(timeout=DONE_WITHIN_S)
            raise AssertionError("the task that always fails did not fail")
        except ValueError as error:
            assert str(error) == "attempt 3", error
        assert sorted(opened.names()) == 3 * ["never"] + 3 * ["third"], opened.names()


def expires():
    with scenario() as opened:
        app = opened.app
        with app.connection_for_write() as connection:
            app.amqp.queues[opened.queue].bind(connection.default_channel).declare()
        sent = time.monotonic()
        add.apply_async(("dropped", 1, 1), expires=2)
        # The publish is not confirmed: it may arrive after the question of another connection.
        wait_until(lambda: opened.waiting() == 1 or time.monotonic() - sent >= 2, "the task waits in the queue")
        wait_until(lambda: opened.waiting() == 0, "the broker drops what nobody took in time")
        with opened.worker("--without-mingle", pool="solo"):
            held = hold.delay("held")
            wait_until(lambda: opened.names() == ["held"], "the worker is busy")
            late = add.apply_async(("late", 1, 1), expires=10)
            sent = time.monotonic()
            wait_until(lambda: opened.waiting() == 0, "the worker takes the task")
            assert time.monotonic() - sent < 10
            wait_until(lambda: time.monotonic() - sent > 10, "the task expires before the worker can run it")
            opened.release()
            assert held.get(timeout=DONE_WITHIN_S) == "held"
            try:
                late.get(timeout=DONE_WITHIN_S)
                raise AssertionError("the task ran although it had expired")
            except TaskRevokedError as error:
                assert (str(error), late.state) == ("expired", "REVOKED"), (error, late.state)
            in_time = add.apply_async(("in-time", 1, 1), expires=60)
            assert in_time.get(timeout=DONE_WITHIN_S) == 2
        assert opened.names() == ["held", "in-time"], opened.names()


def priorities():
    with scenario(task_queue_max_priority=5, worker_prefetch_multiplier=1, task_acks_late=True) as opened:
        for priority in (1, 5, 3, None):
            last = add.apply_async((f"priority-{priority}", 1, 1), priority=priority)
        with opened.worker("--without-mingle"):
            assert last.get(timeout=DONE_WITHIN_S) == 2
        order = [f"priority-{priority}" for priority in (5, 3, 1, None)]
        assert opened.names() == order, opened.names()


def native_delay():
    quorum = {"task_default_queue_type": "quorum", "broker_native_delayed_delivery_queue_type": "quorum",
              "worker_detect_quorum_queues": True, "broker_transport_options": {"confirm_publish": True}}
    with scenario(exchange_type="topic", queue_arguments=QUORUM, **quorum) as opened:
        with opened.worker("--without-mingle", concurrency=4):
            check_levels()
            sent = []
            for countdown in (1, 2, 3, 1, 2, 3):
                due = time.time() + countdown
                sent.append((due, tell_times.apply_async((f"in-{countdown}",), countdown=countdown)))
            eta = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1.5)
            at_eta = tell_times.apply_async(("at-eta",), eta=eta)
            lateness = [result.get(timeout=DONE_WITHIN_S)[0] - due for due, result in sent]
            # Celery rounds an ETA down to seconds, and its worker waits for the rest.
            lateness.append(at_eta.get(timeout=DONE_WITHIN_S)[1] - eta.timestamp())
        assert min(lateness) >= 0, f"early: {lateness}"
        print(f"figure native delay: {min(lateness) * 1000:.0f} to {max(lateness) * 1000:.0f} ms late", flush=True)
        assert sorted(opened.names()) == sorted(["at-eta"] + 2 * ["in-1", "in-2", "in-3"]), opened.names()


def check_levels():
    """The worker has declared all levels, as kombu does: declaring them again is no error."""
    with Connection(URL) as connection:
        channel = connection.default_channel
        for level in range(28):
            channel.exchange_declare(f"celery_delayed_{level}", "topic", passive=True)
            assert channel.queue_declare(f"celery_delayed_{level}", passive=True).message_count == 0
        declare_native_delayed_delivery_exchanges_and_queues(connection, "quorum")


def dead_letter():
    dead = runner.unique()
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    with scenario(queue_arguments=arguments) as opened, opened.app.connection_for_read() as connection:
        letters = Queue(dead, exclusive=True).bind(connection.default_channel)
        letters.declare()
        with opened.worker("--without-mingle"):
            reject.delay("rejected")
            runner.eventually(lambda: letters.queue_declare(passive=True).message_count, "the task is rejected")
        message = letters.get(no_ack=True)
        assert message.headers["task"] == "celery_app.reject", message.headers
        assert message.decode()[0] == ["rejected"], message.decode()
        expected.check_first_death(message.headers, "rejected", opened.queue, "", opened.queue)
        assert opened.names() == ["rejected"], opened.names()


def restart():
    with scenario(worker_prefetch_multiplier=1) as opened, opened.worker():
        hold.delay("runs")
        wait_until(lambda: opened.names() == ["runs"], "the worker is busy")
        add.delay("taken", 1, 1)  # by the worker, which will run it next
        wait_until(lambda: opened.waiting() == 0, "the worker has taken the next task")
        add.delay("waits", 1, 1)
        wait_until(lambda: opened.waiting() == 1, "the last task waits")
        runner.restart_broker()
        opened.release()
        wait_until(lambda: {"taken", "waits"} <= set(opened.names()), "the worker is back", READY_WITHIN_S)
        assert add.delay("later", 1, 2).get(timeout=READY_WITHIN_S) == 3
        assert opened.waiting() == 0
        once = [name for name in opened.names() if name != "taken"]  # what was taken may be run again
        assert once == ["runs", "waits", "later"], opened.names()


runner.run(celery.__version__, {
    "connect": connect, "tls": tls, "prefetch": prefetch, "acks-late": acks_late, "retry": retry, "expires": expires,
    "priorities": priorities, "native-delay": native_delay, "dead-letter": dead_letter, "restart": restart})
