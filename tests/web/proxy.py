"""A proxy before a broker that can fail in each of the ways in which proxies and connections fail."""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


class Proxy:
    """Passes requests on to `target`. What tests set:

    - `status`: answers with this status and a page of HTML instead of asking the broker
    - `fault`: "cut" ends each answer of the API halfway, "short" does so without saying how long it would be,
      "silent" never answers, "drop" closes each connection of the API at its second request
    - `tag`: the ETag of the first file of the page
    - `added`: headers that answers of the API get, by the beginning of their path: `{"/api/queues": {"name": "value"}}`
    """

    def __init__(self, target):
        self.target = urlsplit(target).netloc
        self.status = self.fault = self.tag = None
        self.added = {}
        self.dropped = 0
        self.ended = threading.Event()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            requests = 0

            def log_message(self, *_):
                pass

            def handle_any(self):
                self.requests += 1
                proxy.answer(self)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        # A browser may break off at any time.
        self.server.handle_error = lambda *_: None
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, handler):
        """Answers one request as it is set."""
        body = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        is_of_api = handler.path.startswith("/api/")
        if self.status is not None:
            self._send(handler, self.status, [("content-type", "text/html")], b"<html><h1>Bad Gateway</h1></html>")
        elif self.fault == "silent" and is_of_api:
            self.ended.wait()
            handler.close_connection = True
        elif self.fault == "drop" and is_of_api and handler.requests > 1:
            self.dropped += 1
            handler.close_connection = True
        else:
            self._pass(handler, body, self.fault if is_of_api else None)

    def _pass(self, handler, body, fault):
        connection = http.client.HTTPConnection(self.target, timeout=30)
        headers = {name: value for name, value in handler.headers.items() if name.lower() not in HOP_BY_HOP}
        try:
            connection.request(handler.command, handler.path, body, headers)
            answer = connection.getresponse()
            payload = answer.read()
        except OSError:
            self._send(handler, 502, [("content-type", "text/html")], b"<html>no broker</html>")
            return
        finally:
            connection.close()
        passed = [(name, value) for name, value in answer.getheaders() if name.lower() not in HOP_BY_HOP]
        passed += [one for path, added in self.added.items() if handler.path.startswith(path) for one in added.items()]
        if self.tag and handler.path == "/":
            passed = [(name, self.tag if name.lower() == "etag" else value) for name, value in passed]
        self._send(handler, answer.status, passed, payload, fault)

    @staticmethod
    def _send(handler, status, headers, payload, fault=None):
        handler.send_response(status)
        for name, value in headers:
            handler.send_header(name, value)
        if fault == "short":
            handler.send_header("connection", "close")
        elif status != 304:
            handler.send_header("content-length", str(len(payload)))
        handler.end_headers()
        if handler.command == "HEAD" or status == 304:
            return
        is_whole = fault not in ("cut", "short")
        handler.wfile.write(payload if is_whole else payload[:len(payload) // 2])
        handler.close_connection = handler.close_connection or not is_whole

    def close(self):
        """Ends the proxy."""
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()
