"""Safetensors files: written so that a crash at any moment leaves the old file or the new one, and read by ranges."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from functorch_like import dtypes
from functorch_like.errors import CheckpointError, UnsupportedError
from functorch_like.io.structure import malformed

TEMPORARY = ".tmp"
#: Dtypes that the format has, by its names for them.
FORMAT: dict[str, str] = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz", "F8_E8M0": "float8_e8m0fnu",
}  # fmt: skip
_KNOWN = frozenset(FORMAT.values())
_CHUNK = 1 << 24


def library() -> Any:
    """Return the safetensors library.

    Raises:
        UnsupportedError: where it is not installed, or too old.
    """
    try:
        import safetensors

        _ = safetensors.TensorSpec
    except (ImportError, AttributeError) as e:
        raise UnsupportedError(
            "ft.io needs the safetensors library, version 0.8 or later",
            fix='pip install "functorch_like[io]", or pip install "safetensors>=0.8"',
        ) from e
    return safetensors


# ------------------------------------------------------------------------------------------------------------ writing
@contextlib.contextmanager
def replacing(path: Path) -> Generator[Path]:
    """Write a file beside `path` in a block. It replaces `path` at the end, complete and on disk, or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY}")
    try:
        yield beside
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
        sync_folder(path.parent)
    except OSError as e:
        raise CheckpointError(
            f"{path} could not be written: {e}", fix="make room or choose another place; what was there is unchanged"
        ) from e
    finally:
        beside.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to disk, where the system can."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def stored(host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array in a dtype that the format has: others as their bytes, in one more dimension where they have several."""
    if host.dtype.name in _KNOWN:
        return host
    if host.dtype == np.complex128:
        return host.view(np.float64).reshape(*host.shape, 2)
    return host.view(np.uint8).reshape(host.shape if host.dtype.itemsize == 1 else (*host.shape, host.dtype.itemsize))


def flat_bytes(host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bytes of a contiguous array."""
    return host.reshape(-1).view(np.uint8)


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray[Any, Any]], metadata: dict[str, str]) -> None:
    """Write a file in place of `path`.

    Args:
        path: of the file.
        tensors: contiguous arrays in dtypes of the format.
        metadata: text for the header.

    Raises:
        CheckpointError: where it cannot be written; an older file at `path` is unchanged then.
    """
    safetensors = library()
    specs = {
        name: safetensors.TensorSpec(
            dtype=host.dtype.name, shape=list(host.shape), data_ptr=host.ctypes.data, data_len=host.nbytes
        )
        for name, host in tensors.items()
    }
    with replacing(path) as beside:
        try:
            safetensors.serialize_file(specs, str(beside), metadata=metadata)
        except safetensors.SafetensorError as e:
            raise OSError(str(e)) from e


def write_text(path: Path, text: str) -> None:
    """Write a text file in place of `path`."""
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


# ------------------------------------------------------------------------------------------------------------ reading
class Stored(NamedTuple):
    """A tensor in a file: its dtype in the format's words, its shape, and where its bytes begin and end."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def _remedy(path: Path) -> str:
    """Return what to do with a file that cannot be read: those of PyTorch and NumPy are archives of another kind."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        start = file.read(6)
        if start == b"\x93NUMPY" or path.suffix == ".npz":
            return "NumPy's files are read by fnp.load(path)"
        if start.startswith((b"PK\x03\x04", b"\x80\x02")):
            return (
                "if PyTorch wrote it, read it there, and write safetensors: safetensors.torch.save_file("
                "torch.load(path, weights_only=True), path); or else restore from another copy"
            )
    return "restore from another copy"


class TensorFile:
    """An open safetensors file.

    Attributes:
        tensors: by name.
        metadata: the text in its header.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        safetensors = library()
        try:
            with safetensors.safe_open(str(path), framework="numpy") as opened:  # it checks the header and the sizes
                self.metadata: dict[str, str] = opened.metadata() or {}
            self._file = path.open("rb", buffering=0)
        except FileNotFoundError as e:
            raise CheckpointError(f"there is no file {path}", fix="check the path") from e
        except (safetensors.SafetensorError, OSError, RecursionError) as e:
            raise CheckpointError(
                f"{path} is not a safetensors file, or is damaged or cut off: {e}", fix=_remedy(path)
            ) from e
        try:
            self.tensors = self._header()
        except BaseException:
            self.close()
            raise

    def _header(self) -> dict[str, Stored]:
        size = int.from_bytes(self._read(0, 8), "little")
        header = json.loads(self._read(8, size))
        header.pop("__metadata__", None)
        end = os.fstat(self._file.fileno()).st_size
        entries: dict[str, Stored] = {}
        for name, entry in header.items():
            begin, stop = (8 + size + offset for offset in entry["data_offsets"])
            if not 8 + size <= begin <= stop <= end:
                raise malformed(f"{self.path.name} changed while it was read")
            entries[name] = Stored(entry["dtype"], tuple(entry["shape"]), begin, stop)
        return entries

    def _read(self, begin: int, size: int) -> bytearray:
        data = bytearray(size)
        self._read_into(begin, memoryview(data))
        return data

    def _read_into(self, begin: int, view: memoryview) -> None:
        self._file.seek(begin)
        while len(view):
            count = self._file.readinto(view)
            if not count:
                raise CheckpointError(f"{self.path} is cut off", fix="restore from another copy")
            view = view[count:]

    def rows(self, name: str, start: int, stop: int) -> np.ndarray[Any, Any]:
        """The bytes of a tensor between two positions along its first axis."""
        tensor = self.tensors[name]
        row = (tensor.end - tensor.begin) // tensor.shape[0] if tensor.shape and tensor.shape[0] else 0
        begin, size = (tensor.begin + start * row, (stop - start) * row) if tensor.shape else (
            tensor.begin, tensor.end - tensor.begin
        )  # fmt: skip
        data = np.empty(size, np.uint8)
        self._read_into(begin, data.data)
        return data

    def digest(self, name: str) -> str:
        """The checksum of a tensor, read in chunks."""
        tensor, total = self.tensors[name], hashlib.blake2b(digest_size=16)
        for begin in range(tensor.begin, tensor.end, _CHUNK):
            total.update(self._read(begin, min(_CHUNK, tensor.end - begin)))
        return total.hexdigest()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def logical_dtype(tensor: Stored) -> dtypes.DType:
    """The dtype of a tensor of a foreign file.

    Raises:
        CheckpointError: for one that no array here has.
    """
    name = FORMAT.get(tensor.dtype)
    if name is None:
        raise CheckpointError(f"no array has the dtype {tensor.dtype!r}", fix="convert the file")
    return dtypes.exact_dtype(name)
