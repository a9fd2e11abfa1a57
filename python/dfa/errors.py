# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exceptions of dfa.

Wrong arguments are ValueError, TypeError or RuntimeError, as torch raises them;
here are the failures that have more to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dfa._core import Diagnostic

__all__ = ["CollectiveError", "CompileError", "DeviceError"]


class CompileError(Exception):
    """The compiler refused its input.

    Attributes:
        diagnostics: what it said, in order. Each has ``severity`` ("error",
            "warning", "remark" or "note"), ``message``, ``file``, ``line`` and
            ``column``; lines and columns count from 1, and 0 means that no
            place is known.
    """

    diagnostics: list[Diagnostic]

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = list(diagnostics)
        lines = [_format(entry) for entry in self.diagnostics]
        super().__init__("\n".join(lines) or "the compiler failed")

    def __reduce__(self):
        """Pickles as text: diagnostics are native objects."""
        return _unpickle, (
            [
                (d.severity, d.message, d.file, d.line, d.column)
                for d in self.diagnostics
            ],
        )


class DeviceError(RuntimeError):
    """A device or its driver failed, or there is none."""


class CollectiveError(RuntimeError):
    """A peer died, is late, or disagrees.

    Attributes:
        rank: the rank that is to blame, or -1 if none is.
        collective: the collective that could not finish, or "".
        bucket: the bucket it worked on, or -1.
    """

    def __init__(
        self,
        message: str,
        rank: int = -1,
        collective: str = "",
        bucket: int = -1,
    ) -> None:
        super().__init__(message)
        self.rank = rank
        self.collective = collective
        self.bucket = bucket

    def __reduce__(self):
        return type(self), (
            str(self),
            self.rank,
            self.collective,
            self.bucket,
        )


def _format(entry: Diagnostic) -> str:
    place = f"{entry.file}:" if entry.file else ""
    if entry.line:
        place += f"{entry.line}:{entry.column}:"
    return f"{place}{' ' if place else ''}{entry.severity}: {entry.message}"


def _unpickle(rows: list[tuple[str, str, str, int, int]]) -> CompileError:
    from dfa._core import Diagnostic

    return CompileError([Diagnostic(*row) for row in rows])
