"""A SeaweedFS of a test's own: an S3-compatible store in one process, in its folder and on loopback ports, by TLS."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import time

import support
from support import free_port
from test_tls import make_certificate

START_SECONDS = 120
# Where `cargo xtask packages` puts it, beside the build of the program under test.
FOLDER = support.PROGRAM.parents[1] / "seaweedfs"
PROGRAM = next((path for path in (FOLDER / "weed", shutil.which("weed")) if path and os.path.exists(path)), None)
KEY, SECRET = "testkey", "testsecret"


class Objects:
    """Runs until it is left; `folder` must be new. `certificate` is what clients have to trust."""

    def __init__(self, folder):
        if PROGRAM is None:
            raise AssertionError("SeaweedFS is not there; run `cargo xtask packages`")
        self.folder = pathlib.Path(folder)
        self.process = None
        self.ports = [free_port() for _ in range(8)]
        self.endpoint = f"https://127.0.0.1:{self.ports[0]}"
        self.certificate, self.key = None, None

    def __enter__(self):
        self.folder.mkdir(parents=True)
        identity = {"name": "mailyard", "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
                    "actions": ["Admin", "Read", "Write", "List"]}
        (self.folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
        self.certificate, self.key = make_certificate(self.folder, "objects", "-addext", "basicConstraints=critical,CA:FALSE")
        (self.folder / "credentials").write_text(f"aws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        s3, s3_grpc, master, master_grpc, filer, filer_grpc, volume, volume_grpc = self.ports
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "server", f"-dir={self.folder}", "-ip=127.0.0.1", f"-master.port={master}",
                 f"-master.port.grpc={master_grpc}", "-master.peers=none", "-master.volumeSizeLimitMB=64",
                 "-master.telemetry=false", f"-volume.port={volume}", f"-volume.port.grpc={volume_grpc}", "-volume.max=100",
                 "-volume.minFreeSpace=0", "-filer", f"-filer.port={filer}", f"-filer.port.grpc={filer_grpc}",
                 f"-filer.localSocket={self.folder}/filer.sock", "-s3", f"-s3.port={s3}", f"-s3.port.grpc={s3_grpc}",
                 "-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.localSocket={self.folder}/s3.sock",
                 f"-s3.config={self.folder}/s3.json", f"-s3.cert.file={self.certificate}", f"-s3.key.file={self.key}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, env=dict(os.environ, HOME=self.folder))
        limit = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", s3), 5).close()
                return
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > limit:
                text = (self.folder / "log").read_text(errors="replace")
                self.kill()
                raise AssertionError(f"SeaweedFS does not begin:\n{text[-3000:]}")
            time.sleep(0.01)

    def kill(self):
        """Ends it as a power cut would; what was put is there when it is started again."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            # It makes these wherever it is told to have its others.
            for path in pathlib.Path("/tmp").glob("seaweedfs-*-grpc-*.sock"):
                if path.stem.endswith(tuple(f"-{port}" for port in self.ports)):
                    path.unlink(missing_ok=True)

    def configuration(self):
        """What the section `sql` says of it. Bodies from 100 octets on lie there, and go as soon as nothing has them."""
        return (f'bodies = "s3://mail/bodies"\nbodies_endpoint = "{self.endpoint}"\n'
                f'bodies_credentials_file = "{self.folder}/credentials"\nbodies_above_bytes = 100\nbodies_kept_days = 0\n')
