# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled steps on disk.

An entry's name is the hash of the key that the compiler makes of a step
(:meth:`dfa._core.Step.key`): the module without its parameters, all options,
the host's CPU or the chip, and the versions of everything that takes part. Both
CUDA images and object files of the host are kept. The key is stored in the
entry too and compared when it is read, so an entry can only ever serve what it
was made for.

Environment: ``DFA_CACHE_DIR`` is the folder (default: ``dfa`` in
``XDG_CACHE_HOME`` or ``~/.cache``; empty: no cache), ``DFA_CACHE_LIMIT_MB`` its
size (default 512); entries that were not used for longest go first.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import tempfile
import warnings
from pathlib import Path

from dfa import _core

__all__ = ["Cache", "compile_step", "default_directory"]

_MAGIC = b"dfa-cache 1\n"
_DIGEST_BYTES = hashlib.sha256().digest_size
_DEFAULT_LIMIT_MB = 512.0


def default_directory() -> Path | None:
    """The folder that the environment names; None: there is no cache."""
    given = os.environ.get("DFA_CACHE_DIR")
    if given is not None:
        return Path(given).expanduser() if given else None
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "dfa"


def _default_limit() -> int:
    text = os.environ.get("DFA_CACHE_LIMIT_MB", "")
    try:
        megabytes = float(text) if text else _DEFAULT_LIMIT_MB
    except ValueError:
        megabytes = -1.0
    if not megabytes >= 0:
        raise ValueError(
            "expects DFA_CACHE_LIMIT_MB to be a number of megabytes, but got "
            f"'{text}'"
        )
    return int(min(megabytes * 2**20, 2**62))


class _BadEntryError(Exception):
    """An entry that cannot be used; the message says why."""


class Cache:
    """A folder of entries, shared by any number of processes.

    Entries are written beside their place and renamed, so a reader sees a whole
    one or none. Whatever goes wrong with the disk is a warning: compiling again
    is always possible.
    """

    def __init__(self, directory: os.PathLike[str], limit_bytes: int) -> None:
        self.directory = Path(directory)
        self.limit_bytes = limit_bytes

    def path(self, key: str) -> Path:
        """Where the entry of a key is, if there is one."""
        name = hashlib.sha256(key.encode()).hexdigest()
        return self.directory / f"{name}.dfa"

    def load(self, key: str) -> _core.Artifact | None:
        """The artifact of a key; None, and a warning, if it is damaged."""
        path = self.path(key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            _warn(f"cannot read {path}: {error.strerror}")
            return None
        try:
            artifact = _decode(data, key)
        except _BadEntryError as error:
            _warn(f"{path} {error}; it is made again")
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # for the order in which entries go
        return artifact

    def store(self, key: str, artifact: _core.Artifact) -> None:
        """Adds an entry, and drops old ones beyond the limit."""
        data = _encode(key, artifact)
        if len(data) > self.limit_bytes:
            return
        path = self.path(key)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.directory, suffix=".tmp")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(name, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(name)
                raise
            self._trim(path)
        except OSError as error:
            _warn(f"cannot write {path}: {error.strerror}")

    def _trim(self, newest: Path) -> None:
        entries = []
        for path in self.directory.glob("*.dfa"):
            # Another process may drop it meanwhile.
            with contextlib.suppress(OSError):
                status = path.stat()
                order = (path == newest, status.st_mtime_ns)
                entries.append((order, status.st_size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.limit_bytes:
                break
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size


def compile_step(
    step: _core.Step,
    target: str,
    options: dict[str, object],
    use_cache: bool = True,
) -> tuple[_core.Artifact, str]:
    """Compiles a step, or finds it in the cache of the environment.

    Returns:
        The artifact, and where it came from: "compiled" or "cache".
    """
    directory = default_directory() if use_cache else None
    if directory is None:
        return step.compile(target, **options), "compiled"
    cache = Cache(directory, _default_limit())
    key = step.key(target, **options)
    artifact = cache.load(key)
    if artifact is not None:
        return artifact, "cache"
    artifact = step.compile(target, **options)
    cache.store(key, artifact)
    return artifact, "compiled"


def _warn(message: str) -> None:
    warnings.warn(f"compile cache: {message}", RuntimeWarning, stacklevel=4)


def _encode(key: str, artifact: _core.Artifact) -> bytes:
    """Magic, length of the header, header, code, digest of all before."""
    code = artifact.code
    header = json.dumps(
        {
            "key": key,
            "target": artifact.target,
            "program": artifact.program_text,
            "code_bytes": len(code),
        }
    ).encode()
    data = _MAGIC + struct.pack("<Q", len(header)) + header + code
    return data + hashlib.sha256(data).digest()


def _decode(data: bytes, key: str) -> _core.Artifact:
    start = len(_MAGIC) + 8
    if len(data) < start + _DIGEST_BYTES or not data.startswith(_MAGIC):
        raise _BadEntryError("is no cache entry of this version")
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        raise _BadEntryError("is damaged (wrong checksum)")
    (length,) = struct.unpack_from("<Q", data, len(_MAGIC))
    try:
        header = json.loads(body[start : start + length])
        code = body[start + length :]
        stored_key, program = header["key"], header["program"]
        target, code_bytes = header["target"], header["code_bytes"]
    except (ValueError, KeyError, TypeError) as error:
        raise _BadEntryError("has a header that cannot be read") from error
    if stored_key != key:
        raise _BadEntryError("was made for something else")
    if code_bytes != len(code):
        raise _BadEntryError("has code of the wrong length")
    try:
        _core.Program(program)  # of this runtime's version, and whole
        return _core.Artifact.load(target, program, code)
    except Exception as error:  # whatever the loader dislikes
        raise _BadEntryError(f"cannot be loaded ({error})") from error
