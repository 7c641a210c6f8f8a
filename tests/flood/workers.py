"""Processes that make the load: each does the same work, in steps that all begin together.

The work is a generator, called with `is_over` and the number of its process. It yields the result of a step and is resumed
when all processes begin the next one. A step without an end of its own runs until `is_over()` returns true.
"""

import multiprocessing
import time
import traceback

COUNT = 2
STEP_TIMEOUT_S = 600.0


class Failed(Exception):
    """A worker could not do its work."""


def _run(pipe, work, number, arguments):
    try:
        began, busy = time.monotonic(), time.process_time()
        for result in work(pipe.poll, number, *arguments):
            passed = max(time.monotonic() - began, 1e-9)
            pipe.send((result, (time.process_time() - busy) / passed))
            pipe.recv()
            began, busy = time.monotonic(), time.process_time()
    except (EOFError, BrokenPipeError):
        pass  # the caller no longer waits for it
    except BaseException:  # noqa: BLE001 - handed to the caller
        pipe.send((Failed(traceback.format_exc()), 0.0))


class Workers:
    """Runs `work(is_over, number, *arguments)` so many times at once."""

    def __init__(self, work, *arguments):
        context = multiprocessing.get_context("spawn")
        self.pipes, self.processes = [], []
        for number in range(COUNT):
            mine, theirs = context.Pipe()
            process = context.Process(target=_run, args=(theirs, work, number, arguments), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)
        # The share of a processor that the busiest of them took in the last step.
        self.busiest = 0.0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.terminate()
            process.join()

    def results(self):
        """What each has found out in this step, when all are done with it."""
        results, shares = zip(*(self._result(pipe) for pipe in self.pipes))
        self.busiest = max(shares)
        return results

    def go_on(self):
        """To the next step."""
        for pipe in self.pipes:
            pipe.send(None)

    def step(self):
        """The next step, from beginning to end: what each has found out."""
        self.go_on()
        return self.results()

    @staticmethod
    def _result(pipe):
        if not pipe.poll(STEP_TIMEOUT_S):
            raise Failed("a worker takes too long")
        try:
            result, share = pipe.recv()
        except EOFError:
            raise Failed("a worker has died") from None
        if isinstance(result, Failed):
            raise result
        return result, share
