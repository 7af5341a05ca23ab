"""A file's bytes: unpacked, and as UTF-8."""

from __future__ import annotations

import gzip
import io
import re
import zipfile
import zlib
from pathlib import Path

from fedrecplus.errors import UserError

PARQUET_MAGIC = b"PAR1"
_GZIP_MAGIC, _ZIP_MAGIC = b"\x1f\x8b", b"PK\x03\x04"
_TAR_MAGIC, _TAR_AT = b"ustar", 257
_UNPACK, _FROM_PYTHON = "unpack it, or pack it with gzip", "give what is in it from Python: fr.FedRec().fit(array)"
_OTHERS = {
    b"BZh": ("is packed by bzip2", _UNPACK),
    b"\xfd7zXZ": ("is packed by xz", _UNPACK),
    b"\x28\xb5\x2f\xfd": ("is packed by zstd", _UNPACK),
    b"7z\xbc\xaf": ("is a 7z archive", "unpack it and give the file of ratings in it"),
    b"Rar!": ("is a rar archive", "unpack it and give the file of ratings in it"),
    b"SQLite format 3": ("is an SQLite database", "write its table as CSV: sqlite3 -header -csv FILE 'SELECT …'"),
    b"ARROW1": ("is an Arrow (Feather) file", "write it as Parquet, or give the frame from Python"),
    b"\x93NUMPY": ("is a NumPy array", _FROM_PYTHON),
    b"\x80\x04": ("is a pickle", _FROM_PYTHON),
    b"\x80\x05": ("is a pickle", _FROM_PYTHON),
    b"%PDF": ("is a PDF file", "give CSV, Parquet or .xlsx"),
    b"%%MatrixMarket": ("is a sparse matrix", "give it from Python: fr.FedRec().fit(scipy.io.mmread(file).tocsr())"),
    b"version https://git-lfs": ("is a pointer of Git LFS, not the file itself", "fetch it: git lfs pull"),
    b"<": ("is HTML or XML, not a table", "look into it: a download that failed leaves such a page"),
}
"""how files begin that are often given and can't be read, what they are, and what to do"""

_NETFLIX = re.compile(rb"\d+:\r?\n\d+,")
_NETFLIX_TO_CSV = (
    """write the item into each line: awk -F, '/:/ {item = $1 + 0; next} {print $1 "," item "," $2 "," $3}' """
    "FILES > ratings.csv"
)


def read_bytes(path: Path) -> bytes:
    """A file's bytes, unpacked if it is gzipped or alone in a zip archive. Every way in which that fails is the user's
    to know.
    """
    if path.is_dir():
        raise UserError(f"{path} is a folder", _file_in(path))
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file", "check the path") from None
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}", "check the permissions") from None
    if data.startswith(_ZIP_MAGIC) and not is_excel(data):
        data = _unzip(data, path)
    elif data.startswith(_GZIP_MAGIC):
        data = _gunzip(data, path)
    elif data and path.suffix == ".gz":
        raise UserError(f"{path} is not a gzip file", "take .gz off its name if it isn't packed")
    if not data:
        raise UserError(f"{path} is empty", "give a file with a rating per line")
    _refuse_others(data, path)
    return data


def _file_in(folder: Path) -> str:
    """What to give instead of a folder: the file that is called so, or one file made of parts of a table."""
    files = [file for file in sorted(folder.iterdir()) if file.suffix in (".csv", ".parquet")]
    ratings = next((file for file in files if "rating" in file.stem.lower()), None)
    if ratings is not None:
        return f"give the file of ratings in it: {ratings}"
    if len(files) > 1:
        kind = files[0].suffix[1:]
        return f"give one file; parts of a table are joined in Python: pl.read_{kind}('{folder}/*.{kind}')"
    return "give the file of ratings in it"


def _refuse_others(data: bytes, path: Path) -> None:
    """Name what is neither a table nor text, since what a text reader would say of it helps nobody."""
    for magic, (problem, remedy) in _OTHERS.items():
        if data.startswith(magic):
            raise UserError(f"{path} {problem}", remedy)
    if _NETFLIX.match(data):
        raise UserError(f"{path} has the items in lines of their own, as the Netflix Prize had", _NETFLIX_TO_CSV)
    if data[_TAR_AT:].startswith(_TAR_MAGIC):
        raise UserError(f"{path} is a tar archive", "unpack it and give the file of ratings in it")


def is_excel(data: bytes) -> bool:
    """Whether it is a workbook: a zip archive of a certain content."""
    if not data.startswith(_ZIP_MAGIC):
        return False
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except zipfile.BadZipFile:
        return False


def _unzip(data: bytes, path: Path) -> bytes:
    """The one file in an archive, but for what macOS adds."""
    unpack = "unpack it and give the file of ratings in it"
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [one.filename for one in archive.infolist() if not one.is_dir()]
            names = [name for name in names if not name.startswith("__MACOSX/")]
            if len(names) == 1:
                return archive.read(names[0])
    except zipfile.BadZipFile:
        raise UserError(f"{path} is a damaged zip archive", "copy or download it again") from None
    except (RuntimeError, NotImplementedError, zlib.error) as error:  # a password, or an unusual packing
        raise UserError(f"{path} is a zip archive that can't be unpacked here: {error}", unpack) from None
    held = ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
    raise UserError(f"{path} is a zip archive of {len(names)} files: {held or 'none'}", unpack)


def _gunzip(data: bytes, path: Path) -> bytes:
    try:
        return gzip.decompress(data)
    except EOFError:
        raise UserError(f"{path} is a truncated gzip file", "copy or download it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"{path} is a damaged gzip file: {error}", "copy or download it again") from None


def as_utf8(data: bytes, source: str) -> bytes:
    """Text as UTF-8 without byte order mark. What isn't UTF-8 is taken for Latin-1, as in older MovieLens sets."""
    if data.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return data.decode("utf-32", errors="replace").encode()
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
