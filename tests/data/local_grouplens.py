"""A GroupLens that runs here, and small sets for it to hand out."""

from __future__ import annotations

import hashlib
import http.server
import io
import threading
import zipfile
from dataclasses import dataclass, field

from tests.waiting import GIVE_UP

NOBODY = "http://127.0.0.1:9/nobody-listens"
RATINGS_CSV = "userId,movieId,rating,timestamp\n1,10,4.0,9\n1,20,0.5,9\n2,10,5.0,9\n3,30,3.5,9\n"
MOVIES_CSV = """movieId,title,genres
10,Heat (1995),Action|Crime
20,"Élan, L' (2001)",(no genres listed)
40,Unrated (1990),Drama
"""


def archive(**files: str | bytes) -> bytes:
    """A zip archive laid out like GroupLens'; u_data is u.data."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, contents in files.items():
            zipped.writestr(f"a-folder/{name.replace('_', '.')}", contents)
    return packed.getvalue()


def small_set() -> bytes:
    return archive(ratings_csv=RATINGS_CSV, movies_csv=MOVIES_CSV)


@dataclass
class GroupLens:
    """What the local server hands out, and what it was asked for."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    stalls: int = 0
    """so many times, send half of an archive and then nothing"""
    half_sent: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def publish(self, name: str, contents: bytes, md5: str | None = None) -> None:
        self.files[f"/{name}.zip"] = contents
        self.files[f"/{name}.zip.md5"] = (md5 or f"MD5 ({name}.zip) = {hashlib.md5(contents).hexdigest()}\n").encode()


class Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, lens: GroupLens, *args: object) -> None:
        self.lens = lens
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.lens.asked.append(self.path)
        contents = self.lens.files.get(self.path)
        if contents is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(contents)))
        self.end_headers()
        half = len(contents) // 2
        self.wfile.write(contents[:half])
        if self.lens.stalls and self.path.endswith(".zip"):
            self.lens.stalls -= 1
            self.wfile.flush()
            self.lens.half_sent.set()
            self.lens.released.wait(GIVE_UP)
            return
        self.wfile.write(contents[half:])

    def log_message(self, *args: object) -> None:
        pass
