"""The Celery application of with_celery.py: its workers run it as `celery -A celery_app worker`."""

import json
import os
import signal
import threading
import time
from pathlib import Path

from celery import Celery, shared_task
from celery.exceptions import Reject
from celery.signals import task_received
from kombu import Exchange, Queue

SETTINGS = "INTEROP_CELERY_SETTINGS"
POLL_S = 0.02

received_at = {}  # in a worker whose pool is not other processes


def make(url, queue, folder, exchange_type="direct", queue_arguments=None, **settings):
    """An application with one queue; its tasks note in the folder what they do."""
    app = Celery("interop", broker=url, backend="rpc://")
    app.conf.update(
        task_queues=[Queue(queue, Exchange(queue, exchange_type), queue, queue_arguments=queue_arguments)],
        task_default_queue=queue, task_default_exchange=queue, task_default_exchange_type=exchange_type,
        task_default_routing_key=queue, broker_connection_retry_on_startup=True, interop_folder=folder, **settings)
    return app


@task_received.connect
def note_received(request, **_):
    received_at[request.id] = time.time()


def note(task, name):
    """Write down that a task runs; one write of a line is not torn."""
    with (Path(task.app.conf.interop_folder) / "runs").open("a") as runs:
        runs.write(f"{name} {os.getpid()}\n")


@shared_task(bind=True)
def add(self, name, left, right):
    note(self, name)
    return left + right


@shared_task
def divide(left, right):
    return left / right


@shared_task(bind=True)
def hold(self, name):
    """Run until the program says that it is enough."""
    note(self, name)
    while not (Path(self.app.conf.interop_folder) / "released").exists():
        time.sleep(POLL_S)
    return name


@shared_task(bind=True, max_retries=2)
def fail_until(self, name, attempts):
    """Succeed at the given attempt, and fail before."""
    note(self, name)
    if self.request.retries + 1 < attempts:
        raise self.retry(exc=ValueError(f"attempt {self.request.retries + 1}"), countdown=0.3)
    return self.request.retries + 1


@shared_task(bind=True, acks_late=True)
def reject(self, name):
    note(self, name)
    raise Reject("not this one", requeue=False)


@shared_task(bind=True)
def tell_times(self, name):
    """When the worker was given this task, and when it runs it."""
    note(self, name)
    return received_at[self.request.id], time.time()


def end_with_program():
    """The program has a pipe to its workers, which is closed when it ends, even if it is killed."""
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)


if SETTINGS in os.environ:
    app = make(**json.loads(os.environ[SETTINGS]))
    threading.Thread(target=end_with_program, daemon=True).start()
