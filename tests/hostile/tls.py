"""The certificate that a Leveret under test shows, and clients that trust it."""

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


class Certificate:
    """Signed by itself, for this machine, valid today."""

    def __init__(self, directory):
        self.file, self.key_file = Path(directory) / "server.pem", Path(directory) / "server.key"
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hostile")])
        now = datetime.datetime.now(datetime.timezone.utc)
        alternatives = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - DAY)
        certificate = builder.not_valid_after(now + DAY).add_extension(alternatives, False).sign(key, hashes.SHA256())
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        self.key_file.write_bytes(key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))

    def context(self, version=None):
        """What a client needs that trusts it. A client that hangs up without a farewell is an end of the stream."""
        context = ssl.create_default_context(cafile=self.file)
        context.check_hostname = False
        if version is not None:
            context.minimum_version = context.maximum_version = version
        return context
