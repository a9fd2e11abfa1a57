# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ADOPT, which torch has not: Adam that converges for any beta2.

The gradient is divided by the second moment of the steps before it, and the
quotient is clipped by step^(1/4). The first step only sets the second moment.
Source: Taniguchi et al., "ADOPT: Modified Adam Can Converge with Any beta2
with the Optimal Rate", arXiv:2411.02853.

    python examples/rules/adopt.py
"""

import dfa
import torch
from dfa import rule


@dfa.rule
def Adopt(  # noqa: N802 - it becomes a class
    grad,
    param,
    exp_avg,
    exp_avg_sq,
    *,
    lr=1e-3,
    betas=(0.9, 0.9999),
    eps=1e-6,
    weight_decay=0.0,
    decoupled=True,
    step,
):
    """ADOPT; ``decoupled`` is AdamW's weight decay, else an L2 penalty."""
    beta1, beta2 = betas
    if not decoupled:  # a bool is known while the rule is traced
        grad = rule.fma(weight_decay, param, grad)
    first = step == 1
    bound = (step - 1) ** 0.25  # once a parameter, in f64
    quotient = grad / rule.maximum(rule.sqrt(exp_avg_sq), eps)
    quotient = rule.clip(quotient, -bound, bound)
    average = rule.fma(1.0 - beta1, quotient - exp_avg, exp_avg)
    average = rule.where(first, 0.0, average)
    square = rule.fma(1.0 - beta2, grad * grad - exp_avg_sq, exp_avg_sq)
    square = rule.where(first, grad * grad, square)
    decay = lr * weight_decay if decoupled else 0.0
    change = rule.fma(lr, average, decay * param)
    return param - rule.where(first, 0.0, change), average, square


def main():
    """Fits a line, and prints the loss on the way."""
    torch.manual_seed(0)
    net = torch.nn.Linear(8, 1)
    data = torch.randn(256, 8)
    wanted = data @ torch.arange(8.0).reshape(8, 1) + 1.0
    optimizer = Adopt(net.parameters(), lr=0.05)
    for step in range(301):
        optimizer.zero_grad()
        loss = (net(data) - wanted).square().mean()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step:3d}  loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
