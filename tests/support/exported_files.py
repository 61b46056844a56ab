"""Files of exported programs, taken apart and put together again with other contents."""

import hashlib
import json

from functorch_like.exporting import format as file_format


def parts(data):
    """Return the header and the programs of a file."""
    body = data[len(file_format.MAGIC) + 32 :]
    size = int.from_bytes(body[:8], "little")
    return json.loads(body[8 : 8 + size]), body[8 + size :]


def signed(header, programs=b"", size=None):
    """Return a file with a correct checksum."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = (len(text) if size is None else size).to_bytes(8, "little") + text + programs
    return file_format.MAGIC + hashlib.sha256(body).digest() + body


def changed(data, **fields):
    """Return a file with other fields in its header."""
    header, programs = parts(data)
    return signed({**header, **fields}, programs)
