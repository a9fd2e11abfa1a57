# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""AdEMAMix, which torch has not: AdamW with a second, slow momentum.

The weight of the slow momentum and its decay rate are warmed up by schedules
of the step, which are computed once a parameter in f64. Source: Pagliardini et
al., "The AdEMAMix Optimizer: Better, Faster, Older", arXiv:2409.03137.

    python examples/rules/ademamix.py
"""

import dfa
import torch
from dfa import rule


@dfa.rule
def AdEMAMix(  # noqa: N802 - it becomes a class
    grad,
    param,
    exp_avg_fast,
    exp_avg_slow,
    exp_avg_sq,
    *,
    lr=1e-3,
    betas=(0.9, 0.999, 0.9999),
    alpha=5.0,
    warmup=1000.0,
    eps=1e-8,
    weight_decay=0.0,
    step,
):
    """AdEMAMix; ``warmup`` is the number of steps of both schedules."""
    beta1, beta2, last = betas
    # The half-life of the slow average grows linearly from that of the fast.
    part = rule.minimum(step / warmup, 1.0)
    start, end = rule.log(beta1), rule.log(last)
    beta3 = rule.exp(start * end / ((1.0 - part) * end + part * start))
    weight = alpha * part

    fast = rule.fma(1.0 - beta1, grad - exp_avg_fast, exp_avg_fast)
    slow = rule.fma(1.0 - beta3, grad - exp_avg_slow, exp_avg_slow)
    square = rule.fma(1.0 - beta2, grad * grad - exp_avg_sq, exp_avg_sq)
    rate = 1.0 / (1.0 - beta1**step)
    root = 1.0 / rule.sqrt(1.0 - beta2**step)
    top = rule.fma(weight, slow, rate * fast)
    ratio = top / rule.fma(rule.sqrt(square), root, eps)
    change = rule.fma(lr, ratio, lr * weight_decay * param)
    return param - change, fast, slow, square


def main():
    """Fits a line, and prints the loss on the way."""
    torch.manual_seed(0)
    net = torch.nn.Linear(8, 1)
    data = torch.randn(256, 8)
    wanted = data @ torch.arange(8.0).reshape(8, 1) + 1.0
    optimizer = AdEMAMix(net.parameters(), lr=0.02, warmup=300.0)
    for step in range(301):
        optimizer.zero_grad()
        loss = (net(data) - wanted).square().mean()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step:3d}  loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
