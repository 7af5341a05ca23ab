"""Files that are there whole or not at all, private ones, JSON to a file or to standard output, and file locks."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from filelock import FileLock, Timeout

from fedrecplus.errors import UserError

if TYPE_CHECKING:
    from numpy.typing import NDArray

STDOUT = Path("-")
"""as the name of a file: standard output"""
_REMEDY = "choose a place that can be written to"


def check_writable(folder: Path) -> None:
    """Refuse a folder in which no file could be made, whether it is there yet or not. Leaves nothing behind."""
    existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not existing.is_dir():
        raise UserError(f"{existing} is a file", "give a place in a folder")
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise UserError(f"{folder} can't be written to: {error.strerror or error}", _REMEDY) from None


@contextlib.contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A path to write to; when the block ends well, the file there takes the place of ``path``."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb+") as written:  # Windows flushes only what is open for writing
            os.fsync(written.fileno())
        temporary.replace(path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}", _REMEDY) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_private(path: Path, content: bytes) -> None:
    """A whole file or none that its owner alone may read from the first byte on: keys, secrets.

    Windows has no such modes: there it is as private as the folder that it lies in.
    """
    with beside(path) as temporary:
        temporary.unlink(missing_ok=True)
        with open_private(temporary) as file:
            file.write(content)


def open_private(path: Path) -> BinaryIO:
    """A new file of our own: who else may write to the folder could have put one there to read along."""
    binary = getattr(os, "O_BINARY", 0)  # else Windows ends lines its own way
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | binary, 0o600), "wb")


def check_private(*paths: Path) -> None:
    """Refuse files that other users may read or write. Windows has no such modes, so nothing is refused there."""
    for path in paths if os.name == "posix" else ():
        if path.exists() and (mode := stat.S_IMODE(path.stat().st_mode)) & 0o077:
            raise UserError(
                f"{path} has mode {mode:o}: other users may read or change it",
                f"look whether somebody did, then chmod 600 {path}; a key or a secret is better made anew",
            )


def read_text(path: Path, remedy: str) -> str:
    """A text file that a user named."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not a text file", remedy) from None
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}", remedy) from None


def write_bytes(path: Path, content: bytes) -> None:
    """A file, whole or not at all."""
    with beside(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """A text file, whole or not at all."""
    write_bytes(path, text.encode())


def write_json(path: Path, content: Any) -> None:
    """A JSON file for people to look into, whole or not at all."""
    write_text(path, json.dumps(content, indent=2) + "\n")


def write_json_to(target: Path | None, content: Any) -> None:
    """What ``--json FILE`` asks for: a file, standard output where it is ``-``, or nothing where it isn't given."""
    if target == STDOUT:
        sys.stdout.write(json.dumps(content, indent=2) + "\n")
        sys.stdout.flush()
    elif target is not None:
        write_json(target, content)


def write_tensors(
    path: Path, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str], *, private: bool
) -> None:
    """A safetensors file, whole or not at all; what clients keep to themselves only its owner may read."""
    import numpy as np
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    with beside(path) as temporary:
        temporary.touch()
        usual = temporary.stat().st_mode
        tables = {name: np.ascontiguousarray(table) for name, table in arrays.items()}
        try:
            save_file(tables, temporary, dict(metadata))
        except SafetensorError as error:  # a full disk, in the words of another language
            raise UserError(f"{path}: {error}", "make room there, or choose another place") from None
        temporary.chmod(0o600 if private else usual)


@contextlib.contextmanager
def locked(path: Path, what: str, remedy: str, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock file ``path`` while the block runs; the operating system frees it when its holder dies.

    Waits ``patience`` seconds for another holder, for ever if negative. Then the error says which process works on
    ``what``, and the remedy. The file is gone after the block.
    """
    lock = FileLock(path, timeout=patience)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
        while _is_removed(lock, path):  # by its last holder, while we waited for it
            lock.release()
            lock.acquire()
    except Timeout:
        raise UserError(f"another process{_holder(path)} works on {what}", remedy) from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}", _REMEDY) from None
    try:
        with contextlib.suppress(OSError):  # Windows refuses to write to a locked file: then no process is named
            path.write_text(str(os.getpid()), encoding="ascii")
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows keeps a file that is open
            path.unlink()
        lock.release()


def _is_removed(lock: FileLock, path: Path) -> bool:
    """Whether what we have locked is no longer the file of that name: others would lock another one."""
    descriptor = lock._context.lock_file_fd
    try:
        return descriptor is not None and not os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return True


def _holder(path: Path) -> str:
    try:
        return f" (id {int(path.read_text(encoding='ascii'))})"
    except (OSError, ValueError):
        return ""
