"""leveretctl beside a start: a node that is reached before its file `ctl.json` is there."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ctl import Ctl

pytestmark = pytest.mark.tools


def test_await_startup_reads_the_file_that_a_start_has_just_written(pytestconfig, tmp_path):
    binary = pytestconfig.getoption("--leveretctl-bin")
    if binary is None:
        pytest.skip("no --leveretctl-bin")
    seen = []

    class Node(BaseHTTPRequestHandler):
        """A node that a client reaches before `ctl.json` is there, and that has no user guest."""

        def do_GET(self):
            seen.append(self.headers["Authorization"])
            file = {"http": f"http://127.0.0.1:{self.server.server_port}", "node": "rabbit@localhost", "token": "token"}
            (tmp_path / "ctl.json").write_text(json.dumps(file))
            answer = b"{}"
            self.send_response(200 if seen[-1] == "Bearer token" else 401)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Node) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ctl = Ctl(binary, tmp_path, {"LEVERET_DATA_DIR": str(tmp_path)})
        ran = ctl.run("await_startup", "--http-url", f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert (ran.err, ran.code) == ("", 0)
    assert len(seen) == 2 and seen[0].startswith("Basic ")


def test_await_startup_waits_for_the_directory_of_a_start_that_has_just_begun(under, pytestconfig, tmp_path):
    if under.name != "leveret":
        pytest.skip("a data directory is Leveret's")
    directory = tmp_path / "data"
    ctl = Ctl(pytestconfig.getoption("--leveretctl-bin"), tmp_path, {})
    broker = under.start()

    def appear():
        directory.mkdir()
        (directory / "ctl.json").write_text((broker.data_dir / "ctl.json").read_text())

    appearing = threading.Timer(0.5, appear)
    appearing.start()
    try:
        ran = ctl.run("await_startup", "--data-dir", directory)
        assert (ran.err, ran.code) == ("", 0)
    finally:
        appearing.join()
        broker.stop()
