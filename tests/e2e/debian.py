"""Programs of Debian packages that cannot be installed beside others: unpacked below target/debian, once, and run from there."""

import os
import pathlib
import platform
import shutil
import subprocess

import support

FOLDER = support.ROOT / "target/debian"
FETCH_SECONDS = 120


class Missing(Exception):
    """The packages are not to be had here."""


def unpacked(name, *packages):
    """The folder in which these packages are unpacked."""
    folder = FOLDER / name
    if folder.exists():
        return folder
    work = FOLDER / f"{name}.{os.getpid()}"
    try:
        (work / "packages").mkdir(parents=True)
        try:
            subprocess.run(["apt-get", "download", *packages], cwd=work / "packages", check=True, capture_output=True,
                           timeout=FETCH_SECONDS)
        except (OSError, subprocess.SubprocessError) as error:
            raise Missing(f"{' '.join(packages)}: {error}") from None
        for package in (work / "packages").iterdir():
            subprocess.run(["dpkg", "-x", package, work / "root"], check=True)
        (work / "root").rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return folder


def environment(folder):
    """The environment for a program of the folder."""
    libraries = [folder / "usr/lib", folder / f"usr/lib/{platform.machine()}-linux-gnu"]
    return dict(os.environ, LD_LIBRARY_PATH=":".join(map(str, libraries)))


def runs(program, folder):
    """Whether the program finds all its libraries."""
    done = subprocess.run(["ldd", program], capture_output=True, env=environment(folder), text=True)
    return pathlib.Path(program).exists() and "not found" not in done.stdout
