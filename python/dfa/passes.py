# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass pipelines on text. The name ``dfa.passes`` is the function."""

from __future__ import annotations

import os
import warnings

from dfa import _core

__all__ = ["passes", "read_text"]


def read_text(text_or_path: str | os.PathLike[str]) -> tuple[str, str]:
    """The text and its name in diagnostics.

    A path is an ``os.PathLike``, or a string of one line that ends in
    ``.mlir``; every other string is the text itself.
    """
    is_path = isinstance(text_or_path, os.PathLike)
    if not is_path and not isinstance(text_or_path, str):
        raise TypeError(
            f"expects text or a path, but got '{type(text_or_path).__name__}'"
        )
    if not is_path and (
        "\n" in text_or_path or not text_or_path.endswith(".mlir")
    ):
        return text_or_path, "<string>"
    name = os.fspath(text_or_path)
    with open(name, encoding="utf-8") as file:
        return file.read(), name


def passes(text: str | os.PathLike[str], pipeline: str) -> str:
    """Runs a pass pipeline on a module and returns the module.

    Args:
        text: the module, or a path of a ``.mlir`` file.
        pipeline: MLIR's textual form, such as ``"dfa-to-kernels"`` or
            ``"dfa-to-cuda{chip=sm_90 format=ptx},canonicalize"``, with or
            without ``builtin.module(...)`` around it. Empty: only verifies.

    Returns:
        The module as text.

    Raises:
        dfa.CompileError: the module or the pipeline is wrong.
        OSError: the file cannot be read.
    """
    source, name = read_text(text)
    result, diagnostics = _core.passes(source, pipeline, name)
    for entry in diagnostics:
        if entry.severity == "warning":
            warnings.warn(
                f"{entry.file}:{entry.line}: {entry.message}", stacklevel=2
            )
    return result
