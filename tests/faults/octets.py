"""Checksums as the files of a data directory carry them (docs/internals/formats/log.md)."""

import hashlib
import json

NODE_JSON = "node.json"
POLYNOMIAL = 0x82F63B78  # CRC-32C, reflected


def _table():
    table = []
    for octet in range(256):
        for _ in range(8):
            octet = octet >> 1 ^ (POLYNOMIAL if octet & 1 else 0)
        table.append(octet)
    return table


TABLE = _table()


def crc32c(octets):
    crc = 0xFFFFFFFF
    for octet in octets:
        crc = TABLE[(crc ^ octet) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def put_crc(header, at):
    """The header with its CRC at that place."""
    header = bytearray(header)
    header[at:at + 4] = bytes(4)
    header[at:at + 4] = crc32c(header).to_bytes(4, "little")
    return bytes(header)


def sealed_node_file(root):
    """A node.json that says this, with its checksum."""
    root = {key: value for key, value in root.items() if key != "sha256"}
    text = json.dumps(root, separators=(",", ":"), ensure_ascii=False)
    return json.dumps({**root, "sha256": hashlib.sha256(text.encode()).hexdigest()}, indent=2).encode()
