"""The stopwatch that bounds of time go by: it leaves out what a busy machine takes, and nothing else."""

import os
import subprocess
import sys
import time

import pytest

from stopwatch import Stopwatch

BUSY = 3  # processes that share one processor with the one that works
WORK_S = 0.4
WORKS = f"""
import time
print("begins", flush=True)
ends_s = time.process_time() + {WORK_S}
while time.process_time() < ends_s: pass
print("done", flush=True)
input()
"""
WORKS_ALWAYS = "while True: pass"

pytestmark = pytest.mark.leveret_only("about no broker")


def python(program, **options):
    return subprocess.Popen([sys.executable, "-c", program], preexec_fn=on_one_processor, **options)


def on_one_processor():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def test_stopwatch_leaves_out_what_other_processes_take():
    busy = [python(WORKS_ALWAYS) for _ in range(BUSY)]
    works = python(WORKS, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert works.stdout.readline() == b"begins\n"
        watch = Stopwatch(works.pid)
        assert works.stdout.readline() == b"done\n"
        elapsed_s, by_clock_s = watch.elapsed_s(), time.monotonic() - watch.began
        assert by_clock_s > 2 * WORK_S and elapsed_s < by_clock_s / 2
    finally:
        for process in (*busy, works):
            process.kill()
            process.wait()


def test_stopwatch_counts_what_a_process_sleeps():
    sleeps = python("input()", stdin=subprocess.PIPE)
    try:
        watch = Stopwatch(sleeps.pid)
        while watch.elapsed_s() < WORK_S:
            time.sleep(0.05)
        assert time.monotonic() - watch.began >= WORK_S
    finally:
        sleeps.kill()
        sleeps.wait()
