"""TLS from the first byte and by STARTTLS, a certificate replaced while the server runs, and SCRAM (RFC 5802, RFC 7677)."""

import base64
import contextlib
import hashlib
import hmac
import imaplib
import os
import signal
import socket
import ssl
import subprocess
import threading
import unittest

import support
from support import Case, Server, add_user, free_port, until


def make_certificate(folder, name, *more):
    """A self-signed certificate for this machine's loopback names, with more options; gives the certificate's and the key's files."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", certificate, *more],
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


class OpenSsl:
    """An IMAP client on top of `openssl s_client`."""

    def __init__(self, port):
        self.process = subprocess.Popen(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-tls1_3", "-crlf",
             "-keymatexport", "EXPORTER-Channel-Binding", "-keymatexportlen", "32"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        # A server that says nothing must not hold up the test for ever.
        self.limit = threading.Timer(support.IMAP_SECONDS, self.process.kill)
        self.limit.start()
        self.exported = bytes.fromhex(self.line_with("Keying material: ").split(": ")[1])
        self.line_with("* OK")

    def line_with(self, wanted):
        for line in self.process.stdout:
            if wanted in line:
                return line.strip()
        raise AssertionError(f"the connection ended without {wanted!r}")

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def command(self, command):
        """Everything up to the tagged answer."""
        self.send(f"A {command}")
        said = []
        for line in self.process.stdout:
            said.append(line)
            if line.startswith("A "):
                return "".join(said)
        raise AssertionError(f"the connection ended: {said}")

    def authenticate(self, scram):
        """The tagged answer to AUTHENTICATE SCRAM-SHA-256-PLUS."""
        self.send("A AUTHENTICATE SCRAM-SHA-256-PLUS")
        for line in self.process.stdout:
            if line.startswith("A "):
                return line
            if line.startswith("+"):
                answer = scram(base64.b64decode(line[1:].strip()))
                self.send(base64.b64encode(answer).decode())
        raise AssertionError("the connection ended")

    def close(self):
        self.limit.cancel()
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


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
        imap.login(support.USER, support.PASSWORD)
        self.use(imap)

    def test_starttls(self):
        imap = self.plain()
        self.assertIn("STARTTLS", imap.capabilities)
        self.ok(imap.starttls(self.trusting()))
        self.assertNotIn("STARTTLS", imap.capabilities)
        imap.login(support.USER, support.PASSWORD)
        self.use(imap)

    def test_nothing_survives_starttls(self):
        """RFC 3501 §6.2.1 and CVE-2011-0411: a command sent in the clear behind STARTTLS must not be carried out over TLS."""
        raw = socket.create_connection(("127.0.0.1", self.server.port), support.IMAP_SECONDS)
        self.addCleanup(raw.close)
        raw.sendall(b"A STARTTLS\r\nB CAPABILITY\r\n")
        said = b""
        while b"A " not in said:
            piece = raw.recv(1000)
            self.assertTrue(piece, said)
            said += piece
        # Refused, or the handshake meets bytes that are none of it, or they were thrown away; but never answered.
        with contextlib.suppress(OSError):
            secured = self.trusting().wrap_socket(raw, server_hostname="localhost")
            self.addCleanup(secured.close)
            secured.settimeout(2)
            said += secured.recv(1000)
        self.assertNotIn(b"B OK", said)

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
        old.login(support.USER, support.PASSWORD)
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
        """RFC 9266: bound to this very TLS session. Python cannot export keying material, so openssl makes the connection."""
        client = OpenSsl(self.tls_port)
        self.addCleanup(client.close)
        self.assertIn("AUTH=SCRAM-SHA-256-PLUS", client.command("CAPABILITY"))
        self.assertIn("OK", client.authenticate(Scram(support.USER, support.PASSWORD, "tls-exporter", client.exported)))
        self.assertIn("OK", client.command("SELECT INBOX"))

        client = OpenSsl(self.tls_port)
        self.addCleanup(client.close)
        answer = client.authenticate(Scram(support.USER, support.PASSWORD, "tls-exporter", bytes(32)))
        self.assertNotIn("OK", answer, "bound to another session")
        imap = self.plain()
        self.assertNotIn("AUTH=SCRAM-SHA-256-PLUS", imap.capabilities)
        imap.logout()

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
