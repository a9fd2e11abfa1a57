# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# What the training examples share: processes, and a picture of loss curves.
"""Ranks on one machine, and curves as SVG."""

import os
import pathlib
import socket
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")


def default_device(ranks):
    """CUDA where each of `ranks` processes has a GPU, else the CPU."""
    return "cuda" if torch.cuda.device_count() >= ranks else "cpu"


def run_ranks(function, ranks, *arguments):
    """Calls function(rank, *arguments) in `ranks` processes.

    Returns what each of them returned, in rank order. Under torchrun the
    processes exist already: the function is called in this one, and only this
    one's result is returned.
    """
    if "RANK" in os.environ:
        return [_enter(int(os.environ["RANK"]), None, function, *arguments)]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        world = (ranks, port, folder)
        mp.spawn(_enter, (world, function, *arguments), nprocs=ranks)
        return [
            torch.load(pathlib.Path(folder) / f"{rank}.pt")
            for rank in range(ranks)
        ]


def _enter(rank, world, function, *arguments):
    if world:
        ranks, port, folder = world
        os.environ.update(
            RANK=str(rank),
            LOCAL_RANK=str(rank),
            WORLD_SIZE=str(ranks),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
        )
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // ranks))
    local = int(os.environ.get("LOCAL_RANK", 0))
    gpus = default_device(int(os.environ["WORLD_SIZE"])) == "cuda"
    if gpus:
        torch.cuda.set_device(local)
    dist.init_process_group("nccl" if gpus else "gloo")
    try:
        result = function(rank, *arguments)
    finally:
        dist.destroy_process_group()
    if world:
        torch.save(result, pathlib.Path(folder) / f"{rank}.pt")
    return result


def draw_curves(path, title, curves, width=640, height=360):
    """Writes an SVG with one line for each of `curves`, name to values.

    Values are finite; the first step is 1. Curves that coincide are told apart
    by their dashes.
    """
    left, top, right, bottom = 56, 40, width - 16, height - 40
    count = max(len(values) for values in curves.values())
    low = min(min(values) for values in curves.values())
    high = max(max(values) for values in curves.values())
    span = high - low or 1.0

    def place(index, value):
        x = left + (right - left) * index / max(count - 1, 1)
        y = bottom - (bottom - top) * (value - low) / span
        return f"{x:.1f},{y:.1f}"

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="22" font-size="14">{title}</text>',
    ]
    for part in range(5):
        value = low + span * part / 4
        y = float(place(0, value).split(",")[1])
        out.append(
            f'<line x1="{left}" x2="{right}" y1="{y}" y2="{y}" stroke="#ddd"/>'
            f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">'
            f"{value:.3g}</text>"
        )
    out.append(
        f'<text x="{right}" y="{bottom + 24}" text-anchor="end">'
        f"step {count}</text>"
        f'<text x="{left}" y="{bottom + 24}">step 1</text>'
    )
    for index, (name, values) in enumerate(curves.items()):
        colour = COLOURS[index % len(COLOURS)]
        dash = ' stroke-dasharray="7 6"' if index % 2 else ""
        points = " ".join(place(i, v) for i, v in enumerate(values))
        out.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" '
            f'stroke-width="2"{dash}/>'
            f'<text x="{right}" y="{top + 16 * (index + 1)}" '
            f'text-anchor="end" fill="{colour}">{name}</text>'
        )
    pathlib.Path(path).write_text("\n".join([*out, "</svg>", ""]))
