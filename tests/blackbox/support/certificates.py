"""Certificates made for a test: an authority, and what it signs."""

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)
FORMATS = {
    "pkcs8": serialization.PrivateFormat.PKCS8,
    "traditional": serialization.PrivateFormat.TraditionalOpenSSL,
}


def _name(common_name):
    parts = [(NameOID.ORGANIZATION_NAME, "Example, Inc."), (NameOID.COMMON_NAME, common_name)]
    return x509.Name([x509.NameAttribute(oid, text) for oid, text in parts])


def _save_key(path, key, form="pkcs8", password=None):
    encryption = serialization.NoEncryption()
    if password is not None:
        encryption = serialization.BestAvailableEncryption(password.encode())
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, FORMATS[form], encryption))


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, as files."""

    certificate: Path
    key: Path
    serial: int


class Authority:
    """Signs certificates."""

    def __init__(self, directory, name="ca"):
        self.directory, self.name = Path(directory), name
        self.key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.datetime.now(datetime.timezone.utc)
        self.certificate = self._builder(name, self.key, now - DAY, now + DAY).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        ).sign(self.key, hashes.SHA256())
        self.file = self.directory / f"{name}.pem"
        self.file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def _builder(self, common_name, key, begin, end):
        builder = x509.CertificateBuilder().subject_name(_name(common_name)).issuer_name(_name(self.name))
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        return builder.not_valid_before(begin).not_valid_after(end)

    def sign(self, common_name, file=None, expired=False, key_type="ec", form="pkcs8", names=(), password=None):
        """A certificate for `common_name`, valid on this machine."""
        key = ec.generate_private_key(ec.SECP256R1()) if key_type == "ec" else rsa.generate_private_key(65537, 2048)
        now = datetime.datetime.now(datetime.timezone.utc)
        begin, end = (now - 3 * DAY, now - 2 * DAY) if expired else (now - DAY, now + DAY)
        local = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")), *names]
        certificate = self._builder(common_name, key, begin, end).add_extension(
            x509.SubjectAlternativeName(local), critical=False
        ).sign(self.key, hashes.SHA256())
        pair = Pair(self.directory / f"{file or common_name}.pem", self.directory / f"{file or common_name}.key",
                    certificate.serial_number)
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _save_key(pair.key, key, form, password)
        return pair

    def listener(self, pair, port=0):
        """The settings of a broker that listens for TLS with a certificate of this authority."""
        return {"listeners.ssl.1": f"127.0.0.1:{port}", "ssl_options.cacertfile": self.file,
                "ssl_options.certfile": pair.certificate, "ssl_options.keyfile": pair.key}

    def context(self, pair=None, version=None):
        """What a client needs that trusts this authority and, with a pair, has a certificate."""
        context = ssl.create_default_context(cafile=self.file)
        if pair is not None:
            context.load_cert_chain(pair.certificate, pair.key)
        if version is not None:
            context.minimum_version = context.maximum_version = version
        return context
