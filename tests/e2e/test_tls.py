"""TLS from the first byte and by STARTTLS, a certificate replaced while the server runs, and SCRAM (RFC 5802, RFC 7677)."""

import base64
import hashlib
import hmac
import imaplib
import os
import signal
import ssl
import subprocess
import unittest

import support
from support import Case, Server, add_user, free_port, until


def make_certificate(folder, name):
    """A self-signed certificate for this machine's loopback names; gives the certificate's and the key's files."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True, timeout=60)
    return certificate, key


class Scram:
    """The client's side of SCRAM-SHA-256, with or without channel binding. Called by imaplib with each challenge."""

    def __init__(self, user, password, binding_name=None, binding=b""):
        self.header = f"p={binding_name},," if binding_name else "n,,"
        self.binding = binding
        self.password = password.encode()
        self.nonce = base64.b64encode(os.urandom(18)).decode()
        self.first_bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={self.nonce}"
        self.steps = iter([self.first, self.final, self.verify])

    def __call__(self, challenge):
        return next(self.steps)(challenge)

    def first(self, _):
        return (self.header + self.first_bare).encode()

    def final(self, server_first):
        fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
        assert fields["r"].startswith(self.nonce), "the server's nonce begins with ours"
        salt, rounds = base64.b64decode(fields["s"]), int(fields["i"])
        assert rounds >= 4096, "RFC 7677 §4"
        salted = hashlib.pbkdf2_hmac("sha256", self.password, salt, rounds)
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        bound = base64.b64encode(self.header.encode() + self.binding).decode()
        without_proof = f"c={bound},r={fields['r']}"
        message = f"{self.first_bare},{server_first.decode()},{without_proof}".encode()
        signature = hmac.digest(hashlib.sha256(client_key).digest(), message, "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature))).decode()
        server_key = hmac.digest(salted, b"Server Key", "sha256")
        self.expected = base64.b64encode(hmac.digest(server_key, message, "sha256")).decode()
        return f"{without_proof},p={proof}".encode()

    def verify(self, server_final):
        assert server_final.decode() == f"v={self.expected}", "the server knows the password too"
        return b""


class Tls(Case):
    def setUp(self):
        super().setUp()
        self.certificate, self.key = make_certificate(self.folder, "first")
        config = self.folder / "mailyard.toml"
        config.write_text(f'[tls]\ncertificate_file = "{self.certificate}"\nkey_file = "{self.key}"\n')
        add_user(self.data)
        self.tls_port = free_port()
        self.server = Server(self.data, "--listen", f"imaps=127.0.0.1:{self.tls_port}", "--config", config).start()
        self.addCleanup(self.server.kill)

    def trusting(self):
        return ssl.create_default_context(cafile=self.certificate)

    def implicit(self, context=None):
        return imaplib.IMAP4_SSL("127.0.0.1", self.tls_port, ssl_context=context or self.trusting(), timeout=support.IMAP_SECONDS)

    def plain(self):
        return imaplib.IMAP4("127.0.0.1", self.server.port, timeout=support.IMAP_SECONDS)

    def use(self, imap):
        """The connection works: a message goes in and comes out."""
        message = b"Subject: over TLS\r\n\r\n" + b"x" * 100_000 + b"\r\n"
        self.ok(imap.append("INBOX", None, None, message))
        count = int(self.ok(imap.select("INBOX"))[0])
        self.assertEqual(self.ok(imap.fetch(str(count), "(BODY.PEEK[])"))[0][1], message)
        imap.logout()

    def test_implicit(self):
        imap = self.implicit()
        self.assertIn(imap.sock.version(), ("TLSv1.2", "TLSv1.3"))
        self.assertNotIn("STARTTLS", imap.capabilities)
        imap.login(support.USER, f'"{support.PASSWORD}"')
        self.use(imap)

    def test_starttls(self):
        imap = self.plain()
        self.assertIn("STARTTLS", imap.capabilities)
        self.ok(imap.starttls(self.trusting()))
        self.assertNotIn("STARTTLS", imap.capabilities)
        imap.login(support.USER, f'"{support.PASSWORD}"')
        self.use(imap)

    def test_nothing_survives_starttls(self):
        """RFC 3501 §6.2.1 and CVE-2011-0411: a command sent in the clear behind STARTTLS must not be carried out over TLS."""
        imap = self.plain()
        imap.send(b"A STARTTLS\r\nB CAPABILITY\r\n")
        first = imap.readline()
        self.assertTrue(first.startswith(b"A "), first)
        if b" OK " in first:
            raw = imap.sock
            with self.assertRaises((ssl.SSLError, OSError)):
                # The handshake meets bytes that are none of it, or the server has closed.
                secured = self.trusting().wrap_socket(raw, server_hostname="localhost")
                secured.settimeout(5)
                data = secured.recv(1000)
                self.assertNotIn(b"B OK", data)
                raise OSError("closed or silent, as it should be")
        imap.shutdown()

    def test_reload(self):
        """SIGHUP: new connections get the new certificate, old ones go on."""
        old = self.implicit()
        before = old.sock.getpeercert(binary_form=True)
        make_certificate(self.folder, "second")
        self.server.process.send_signal(signal.SIGHUP)

        def changed():
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            imap = self.implicit(context)
            now = imap.sock.getpeercert(binary_form=True)
            imap.logout()
            return now != before
        until("new certificate", changed)
        old.login(support.USER, f'"{support.PASSWORD}"')
        self.use(old)

    def test_scram(self):
        for connect in (self.plain, self.implicit):
            imap = connect()
            self.assertIn("AUTH=SCRAM-SHA-256", imap.capabilities)
            self.ok(imap.authenticate("SCRAM-SHA-256", Scram(support.USER, support.PASSWORD)))
            self.use(imap)
        for user, password in ((support.USER, "wrong"), ("nobody", support.PASSWORD)):
            imap = self.plain()
            with self.assertRaises(imaplib.IMAP4.error):
                imap.authenticate("SCRAM-SHA-256", Scram(user, password))
            imap.logout()

    def test_scram_plus(self):
        """RFC 5929 §4: bound to the server's certificate."""
        imap = self.implicit()
        self.assertIn("AUTH=SCRAM-SHA-256-PLUS", imap.capabilities)
        binding = hashlib.sha256(imap.sock.getpeercert(binary_form=True)).digest()
        scram = Scram(support.USER, support.PASSWORD, "tls-server-end-point", binding)
        self.ok(imap.authenticate("SCRAM-SHA-256-PLUS", scram))
        self.use(imap)
        imap = self.implicit()
        scram = Scram(support.USER, support.PASSWORD, "tls-server-end-point", bytes(32))
        with self.assertRaises(imaplib.IMAP4.error):
            imap.authenticate("SCRAM-SHA-256-PLUS", scram)
        imap.logout()
        self.assertNotIn("AUTH=SCRAM-SHA-256-PLUS", self.plain().capabilities)

    def test_plain_and_login(self):
        imap = self.implicit()
        answer = f"\0{support.USER}\0{support.PASSWORD}".encode()
        self.ok(imap.authenticate("PLAIN", lambda _: answer))
        self.use(imap)
        imap = self.implicit()
        with self.assertRaises(imaplib.IMAP4.error):
            imap.login(support.USER, "wrong")
        imap.logout()


if __name__ == "__main__":
    unittest.main()
