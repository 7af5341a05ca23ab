"""A file's bytes: unpacked, and as UTF-8."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from pathlib import Path

from fedrecplus.errors import UserError

PARQUET_MAGIC = b"PAR1"
_GZIP_MAGIC, _ZIP_MAGIC = b"\x1f\x8b", b"PK\x03\x04"


def read_bytes(path: Path) -> bytes:
    """A file's bytes, unpacked if it is gzipped. Every way in which that fails is the user's to know."""
    if path.is_dir():
        raise UserError(f"{path} is a folder", "give the file of ratings in it")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file", "check the path") from None
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}", "check the permissions") from None
    if data.startswith(_ZIP_MAGIC) and not is_excel(data):
        raise UserError(f"{path} is a zip archive", "unpack it and give the file of ratings in it")
    if data.startswith(_GZIP_MAGIC):
        data = _gunzip(data, path)
    elif data and path.suffix == ".gz":
        raise UserError(f"{path} is not a gzip file", "take .gz off its name if it isn't packed")
    if not data:
        raise UserError(f"{path} is empty", "give a file with a rating per line")
    return data


def is_excel(data: bytes) -> bool:
    """Whether it is a workbook: a zip archive of a certain content."""
    if not data.startswith(_ZIP_MAGIC):
        return False
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except zipfile.BadZipFile:
        return False


def _gunzip(data: bytes, path: Path) -> bytes:
    try:
        return gzip.decompress(data)
    except EOFError:
        raise UserError(f"{path} is a truncated gzip file", "copy or download it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path} is a damaged gzip file: {error}", "copy or download it again") from None


def as_utf8(data: bytes, source: str) -> bytes:
    """Text as UTF-8 without byte order mark. What isn't UTF-8 is taken for Latin-1, as in older MovieLens sets."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace").encode()
    if b"\0" in data[:4096]:
        raise UserError(f"{source} is not a text file", "give CSV, TSV, '::'-separated text, Parquet or .xlsx")
    data = data.removeprefix(b"\xef\xbb\xbf")
    if data.isascii():  # much faster than decoding, and the usual case
        return data
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1").encode()
    return data
