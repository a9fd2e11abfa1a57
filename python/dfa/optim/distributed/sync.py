# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients on their way into buckets, and the reduction of the buckets.

One pass reduces every bucket once, in plan order on every rank. A pass belongs
to a backward outside ``no_sync`` if reductions overlap with it, else to
``grad_sync``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from dfa.optim.distributed.buckets import Bucket, Buckets, Member
from dfa.optim.program import Instance


class GradSync:
    """The state of all gradients since ``zero_grad``."""

    def __init__(self, *, overlap: bool, contiguous: bool) -> None:
        """Nothing is known before ``attach``."""
        self.overlap = overlap
        self.contiguous = contiguous
        self.held = False  # inside no_sync
        self.greedy = False
        self.prescale = 1.0
        self.present: set[Member] = set()
        self.consumed = False  # a hook took a gradient since zero_grad
        self._pending: dict[Bucket, dict[Member, Tensor]] = {}
        self._in_backward = self._left = False
        self._next = 0
        self.passes = 0
        self.carried = False
        self.program: Instance | None = None

    def attach(self, buckets: Buckets, prepare: Callable[[], Instance]) -> None:
        """Works on these buckets from now on.

        ``prepare`` makes the program that reduces them, when it is needed.
        """
        self._join()
        self.buckets = buckets
        self.program = None
        self._prepare = prepare

    @property
    def empty(self) -> bool:
        """Whether there is no gradient since ``zero_grad``."""
        return not self.present and not self.passes

    # === Contributions =======================================================

    def on_gradient(self, member: Member) -> None:
        """Takes the gradient that autograd has just accumulated.

        Raises:
            RuntimeError: the bucket's reduction has started in this pass.
        """
        grad = member.param.grad
        if grad is None:
            return
        if self.held and not self.greedy and not self.contiguous:
            self._left = True
            return  # stays in .grad, where autograd adds to it
        bucket = member.bucket
        if bucket.started:
            raise RuntimeError(
                f"the gradient of parameter '{member.name}' came after the "
                "reduction of its bucket had started in this backward pass"
            )
        self.present.add(member)
        self.consumed = True
        if self.contiguous:
            self._accumulated(member, grad)
        else:
            member.param.grad = None
            self._pending.setdefault(bucket, {})[member] = grad
        if not self.overlap or self.held:
            self._fill(bucket)
            return
        if not self._in_backward:
            self._in_backward = True
            torch.autograd.Variable._execution_engine.queue_callback(
                self._end_of_backward
            )
        bucket.arrived.add(member)
        if len(bucket.arrived) == len(bucket.members):
            self._fill(bucket)
            self._advance()

    def _accumulated(self, member: Member, grad: Tensor) -> None:
        """Autograd added in place to the bucket, unless .grad was replaced."""
        bucket = member.bucket
        view = member.grad_view
        if bucket.reduced:
            raise RuntimeError(
                f"parameter '{member.name}' got a gradient after its bucket "
                "was reduced; with contiguous_grad_buffer call zero_grad "
                "first, or accumulate inside no_sync"
            )
        if grad.data_ptr() != view.data_ptr():
            view.add_(grad) if member in bucket.filled else view.copy_(grad)
            same = view.dtype == member.param.dtype
            member.param.grad = view if same else None
        bucket.filled.add(member)

    def collect(self) -> bool:
        """Takes gradients that are still in ``.grad``; whether there were."""
        found = self._left = False
        for member in self.buckets.with_gradient():
            grad = member.param.grad
            if grad.layout != torch.strided:
                raise RuntimeError(
                    "expects dense gradients, but parameter "
                    f"'{member.name}' has one of layout {grad.layout}"
                )
            if self.contiguous:
                place = member.grad_view.data_ptr()
                if member.numel and grad.data_ptr() != place:
                    self._accumulated(member, grad)
                    self.present.add(member)
                    found = True
                continue
            found = True
            self.present.add(member)
            member.param.grad = None
            self._pending.setdefault(member.bucket, {})[member] = grad
        return found

    def _fill(self, bucket: Bucket) -> None:
        """Copies or adds what is pending into the bucket."""
        pending = self._pending.pop(bucket, None)
        if not pending:
            return
        if bucket.reduced:
            # A later pass: what is reduced already is added at its end.
            self._join()
            bucket.carry = bucket.own_grad.clone()
            bucket.reduced = False
            bucket.filled.clear()
        fresh = [m for m in pending if m.numel and m not in bucket.filled]
        later = [m for m in pending if m.numel and m in bucket.filled]
        for members, put in (
            (fresh, torch._foreach_copy_),
            (later, torch._foreach_add_),
        ):
            if not members:
                continue
            grads = [pending[member] for member in members]
            if self.prescale != 1.0:
                grads = [grad.float() * self.prescale for grad in grads]
            put([member.grad_view for member in members], grads)
        bucket.filled.update(pending)

    # === Reduction ===========================================================

    def _end_of_backward(self) -> None:
        self._in_backward = False
        if self._left:
            # What only held passes saw belongs to this pass: whether there is
            # another one must not depend on the rank.
            self.collect()
        self.run_pass()

    def _advance(self) -> None:
        """Starts every bucket that is full and next in order."""
        order = self.buckets.order
        while self._next < len(order):
            bucket = order[self._next]
            if len(bucket.arrived) < len(bucket.members) or bucket.reduced:
                return
            self._start(bucket)
            self._next += 1

    def run_pass(self) -> None:
        """Starts all buckets that have not, and ends the pass."""
        order = self.buckets.order
        while self._next < len(order):
            bucket = order[self._next]
            self._fill(bucket)
            if bucket.reduced:
                self._join()
                bucket.carry = bucket.own_grad.clone()
                bucket.filled.clear()
            self._start(bucket)
            self._next += 1
        self._next = 0
        self.passes += 1
        for bucket in order:
            bucket.arrived.clear()
            bucket.started = False
            bucket.reduced = True
            self.carried |= bucket.carry is not None

    def _join(self) -> None:
        """Orders what follows on the stream behind started reductions."""
        if self.program is not None:
            self.program.join()

    def _start(self, bucket: Bucket) -> None:
        complete = len(bucket.filled) == len(bucket.members)
        for member in () if complete else bucket.members:
            # Contiguous buffers are zero since zero_grad, or the user's.
            missing = member not in bucket.filled and member.numel
            if missing and not self.contiguous:
                member.view(bucket.grad).zero_()
        bucket.started = True
        if self.program is None:
            self.program = self._prepare()
        self.program.reduce_bucket(bucket.class_index, bucket.number)

    def finish(self) -> bool:
        """Ends all passes; whether partial norms are of no use any more."""
        if self.collect() or self.passes == 0 or self._pending:
            self.run_pass()
        return self.carried

    def add_carried(self) -> None:
        """Adds what earlier passes had reduced, after the stream's join."""
        for bucket in self.buckets.buckets:
            if bucket.carry is not None:
                bucket.own_grad.add_(bucket.carry)
                bucket.carry = None
        self.carried = False

    def forget(self) -> None:
        """Forgets all gradients."""
        self._pending.clear()
        self.present.clear()
        self.consumed = False
        self.passes = 0
        self._next = 0
        self._in_backward = self._left = False
        self.carried = False
        for bucket in self.buckets.buckets:
            bucket.filled.clear()
            bucket.arrived.clear()
            bucket.started = bucket.reduced = False
            bucket.carry = None
            if self.contiguous:
                bucket.grad.zero_()

    def move(self, old: Buckets, new: Buckets) -> None:
        """Moves gradients between plans that begin with the same buckets."""
        for bucket in old.buckets:
            self._fill(bucket)
        for before, after in zip(old.grads, new.grads, strict=False):
            after[: before.numel()].copy_(before)
        places = {(b.class_index, b.number): b for b in new.buckets}
        for bucket in old.buckets:
            twin = places[bucket.class_index, bucket.number]
            twin.filled = bucket.filled
            twin.reduced, twin.carry = bucket.reduced, bucket.carry
            self.carried |= bucket.reduced  # partial norms stayed behind

    def bind_grads(self, members: Iterable[Member]) -> None:
        """Makes ``.grad`` views of the buckets (contiguous buffers)."""
        for member in members:
            if member.param.requires_grad and member.numel:
                view = member.view(member.bucket.grad)
                if view.dtype == member.param.dtype:
                    member.param.grad = view
