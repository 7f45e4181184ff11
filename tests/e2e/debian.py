"""Programs of Debian packages that cannot be installed beside others: unpacked below target/debian, once, and run from there.

Where they cannot be fetched the tests that need them fail; with MAILYARD_OFFLINE=1 in the environment they are skipped.
"""

import os
import pathlib
import platform
import shutil
import subprocess
import unittest

import support

FOLDER = support.ROOT / "target/debian"
FETCH_SECONDS = 120


OFFLINE = os.environ.get("MAILYARD_OFFLINE", "0") != "0"


class Missing(unittest.SkipTest if OFFLINE else Exception):
    """The packages are not to be had here."""


def fetch(folder, packages):
    """Debian's files of these packages, in the folder."""
    def apt(*arguments):
        return subprocess.run(["apt-get", *arguments], cwd=folder, capture_output=True, text=True, timeout=FETCH_SECONDS)

    try:
        done = apt("download", *packages)
        if done.returncode != 0 and not OFFLINE and os.geteuid() == 0:
            # The lists of packages may be missing, or name versions that are gone.
            apt("update")
            done = apt("download", *packages)
    except (OSError, subprocess.SubprocessError) as error:
        raise Missing(f"{' '.join(packages)}: {error}") from None
    if done.returncode != 0:
        raise Missing(f"{' '.join(packages)}: {done.stderr.strip()} (MAILYARD_OFFLINE=1 skips these tests)")


def unpacked(name, *packages):
    """The folder in which these packages are unpacked."""
    folder = FOLDER / name
    if folder.exists():
        return folder
    work = FOLDER / f"{name}.{os.getpid()}"
    try:
        (work / "packages").mkdir(parents=True)
        fetch(work / "packages", packages)
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
