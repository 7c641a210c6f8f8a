"""A client of TLS 1.3 that can say what libraries do not: key updates, records and handshake messages of any kind.

One suite (AES-128-GCM with SHA-256), one group (X25519), and no look at the server's certificate: it is for attacks on
the server, and protects no secrets. RFC 8446.
"""

import hashlib
import hmac
import os
import socket
import struct

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION_DATA = 20, 21, 22, 23
CLIENT_HELLO, SERVER_HELLO, FINISHED, KEY_UPDATE = 1, 2, 20, 24
NOT_REQUESTED, REQUESTED = 0, 1
NOTHING = hashlib.sha256().digest()


def expand(secret, label, context=b"", size=32):
    """HKDF-Expand-Label, of at most one block."""
    label = b"tls13 " + label
    info = struct.pack(">HB", size, len(label)) + label + bytes([len(context)]) + context
    return hmac.digest(secret, info + b"\x01", "sha256")[:size]


def message(kind, body):
    """A handshake message."""
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


def extension(kind, body):
    return struct.pack(">HH", kind, len(body)) + body


class Direction:
    """The keys of one direction."""

    def __init__(self, secret):
        self.secret = secret
        self.cipher = AESGCM(expand(secret, b"key", size=16))
        self.iv = int.from_bytes(expand(secret, b"iv", size=12), "big")
        self.sequence = 0

    def nonce(self):
        self.sequence += 1
        return (self.iv ^ (self.sequence - 1)).to_bytes(12, "big")

    def updated(self):
        return Direction(expand(self.secret, b"traffic upd"))


class RecordSocket:
    """As much of a socket as a peer needs, and what it can do below."""

    def __init__(self, address):
        self.socket = socket.create_connection(address, timeout=60.0)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.arrived = b""
        self.reads = self.writes = None
        self.key_updates = 0
        self._shake_hands()

    def _shake_hands(self):
        key = X25519PrivateKey.generate()
        share = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        extensions = (
            extension(43, b"\x02\x03\x04") + extension(10, b"\x00\x02\x00\x1d")
            + extension(13, b"\x00\x04\x04\x03\x08\x04")
            + extension(51, struct.pack(">HHH", 36, 29, 32) + share))
        hello = b"\x03\x03" + os.urandom(32) + b"\x00" + b"\x00\x02\x13\x01" + b"\x01\x00"
        hello = message(CLIENT_HELLO, hello + struct.pack(">H", len(extensions)) + extensions)
        self.send_record(HANDSHAKE, hello)
        kind, answer = self.read_record()
        assert (kind, answer[0]) == (HANDSHAKE, SERVER_HELLO), (kind, answer)
        shared = key.exchange(X25519PublicKey.from_public_bytes(self._server_share(answer)))
        early = hmac.digest(bytes(32), bytes(32), "sha256")
        secret = hmac.digest(expand(early, b"derived", NOTHING), shared, "sha256")
        said = hello + answer
        digest = hashlib.sha256(said).digest()
        self.reads, writes = (Direction(expand(secret, side + b" hs traffic", digest)) for side in (b"s", b"c"))
        arrived = b""
        while not self._ends_with_finished(arrived):
            kind, fragment = self.read_record()
            arrived += fragment if kind == HANDSHAKE else b""
        digest = hashlib.sha256(said + arrived).digest()
        self.writes = writes
        proof = hmac.digest(expand(writes.secret, b"finished"), digest, "sha256")
        self.send_record(HANDSHAKE, message(FINISHED, proof))
        secret = hmac.digest(expand(secret, b"derived", NOTHING), bytes(32), "sha256")
        self.reads, self.writes = (Direction(expand(secret, side + b" ap traffic", digest)) for side in (b"s", b"c"))

    @staticmethod
    def _server_share(hello):
        at = 4 + 2 + 32
        at += 1 + hello[at] + 2 + 1 + 2
        while at < len(hello):
            kind, size = struct.unpack_from(">HH", hello, at)
            if kind == 51:
                return hello[at + 8:at + 4 + size]
            at += 4 + size
        raise AssertionError("no key share")

    @staticmethod
    def _ends_with_finished(messages):
        at, kind = 0, None
        while at + 4 <= len(messages):
            kind = messages[at]
            at += 4 + int.from_bytes(messages[at + 1:at + 4], "big")
        return kind == FINISHED and at == len(messages)

    # ------------------------------------------------------------------------------------------------ records

    def record(self, kind, payload):
        """The octets of one record."""
        if self.writes is None:
            return struct.pack(">BHH", kind, 0x0303, len(payload)) + payload
        head = struct.pack(">BHH", APPLICATION_DATA, 0x0303, len(payload) + 17)
        return head + self.writes.cipher.encrypt(self.writes.nonce(), payload + bytes([kind]), head)

    def send_record(self, kind, payload):
        self.socket.sendall(self.record(kind, payload))

    def key_update(self, request):
        """The octets of a key update, behind which the new key is used."""
        octets = self.record(HANDSHAKE, message(KEY_UPDATE, bytes([request])))
        self.writes = self.writes.updated()
        return octets

    def read_record(self):
        """Kind and content of the next record; an end of the stream is an EOFError."""
        while True:
            head = self._exactly(5)
            kind, _, size = struct.unpack(">BHH", head)
            payload = self._exactly(size)
            if kind != APPLICATION_DATA:
                if kind == CHANGE_CIPHER_SPEC:
                    continue
                return kind, payload
            content = self.reads.cipher.decrypt(self.reads.nonce(), payload, head).rstrip(b"\0")
            return content[-1], content[:-1]

    def _exactly(self, size):
        while len(self.arrived) < size:
            octets = self.socket.recv(1 << 16)
            if not octets:
                raise EOFError
            self.arrived += octets
        taken, self.arrived = self.arrived[:size], self.arrived[size:]
        return taken

    # ------------------------------------------------------------------------------------------------ as a socket

    def sendall(self, octets):
        for at in range(0, len(octets), 16_384):
            self.send_record(APPLICATION_DATA, octets[at:at + 16_384])

    def recv(self, _):
        """What the next record with something in it brings; nothing after an alert or the end."""
        while True:
            try:
                kind, content = self.read_record()
            except EOFError:
                return b""
            if kind == ALERT:
                return b""
            if kind == HANDSHAKE and content[0] == KEY_UPDATE:
                self.key_updates += 1
                self.reads = self.reads.updated()
            elif kind == APPLICATION_DATA and content:
                return content

    def settimeout(self, timeout_s):
        self.socket.settimeout(timeout_s)

    def close(self):
        self.socket.close()
