# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DistributedFusedAdam: construction, and torch's optimizer contract.

Gradients and norms are in gradients.py, loading and saving in checkpoint.py.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.optim import Optimizer

from dfa.optim import clip
from dfa.optim.adamw import check_adam
from dfa.optim.distributed import checkpoint, factors
from dfa.optim.distributed.arguments import check_storage
from dfa.optim.distributed.gather import LazyGather
from dfa.optim.distributed.gradients import GradientMethods
from dfa.optim.distributed.management import Management
from dfa.optim.distributed.mesh import connect, make_mesh
from dfa.optim.distributed.sync import GradSync
from dfa.optim.fused import SKIPS_BEFORE_WARNING, number


class DistributedFusedAdam(Management, GradientMethods, LazyGather, Optimizer):
    """Adam and AdamW with sharded states: apex's class, compiled by dfa.

    States are sharded over ``distributed_process_group`` and replicated over
    ``redundant_process_group``. On CUDA collectives are NCCL's, on the CPU
    Gloo's; without ``torch.distributed`` there is one rank. Source: Kingma &
    Ba, arXiv:1412.6980; Loshchilov & Hutter, arXiv:1711.05101; Rajbhandari et
    al., arXiv:1910.02054.

    Args:
        params: parameters, groups or named parameters; float64, float32,
            float16 or bfloat16, any dense memory format, one device.
        lr: learning rate, a float or a 0-dim tensor.
        bias_correction: divide the moments by 1 - beta^t.
        betas: decay rates of the moments.
        eps: added to the root of the second moment.
        adam_w_mode: decoupled weight decay, else an L2 penalty.
        weight_decay: its factor.
        amsgrad: divide by the largest second moment so far.
        dtype: dtype of the states: float32, float16 or bfloat16.
        grad_sync_dtype: dtype of gradients in buckets; ``dtype`` by default.
        param_sync_dtype: dtype in which parameters are gathered; int32 and
            int64 stand for the bits of parameters of that size.
        device: the parameters' device.
        process_group: all ranks; the world by default.
        distributed_process_group: the ranks that share one copy of the states.
        redundant_process_group: the ranks that hold the same part of them.
        average_grad_sync: average gradients over ranks, else add them.
        overlap_grad_sync: start reductions during the backward pass.
        overlap_param_sync: gather parameters while the next forward pass of
            a model given to :meth:`attach` begins; other parameters are
            gathered when ``step`` returns.
        bucket_cap_mb: bound of a bucket, in MiB of its gradients.
        pipeline_size: accepted; buckets are pipelined on the device.
        contiguous_param_buffer: accepted; parameters are views of one buffer
            whenever their dtype is ``param_sync_dtype``.
        contiguous_grad_buffer: ``.grad`` is a view of one buffer.
        store_params: keep a float32 copy of sharded parameters.
        store_param_remainders: keep 16 bits more of bfloat16 parameters.
        with_scaled_states: accepted; such states are kept in float32.
        nccl_ub: accepted.
        capturable: keep ``lr`` in a tensor for each group.
        maximize: climb instead of descending.
        on_nonfinite: ``"skip"`` or ``"propagate"``: what a step without a
            scaler does if a gradient is inf or nan on any rank.
        missing_grad: ``"skip"`` (a parameter without a gradient on any rank
            is left alone, as torch does) or ``"zero"`` (its gradient counts
            as zero, as apex does).

    Raises:
        ValueError: a dtype or a hyper-parameter is out of range.
        RuntimeError: options exclude each other, or groups do not fit.
    """

    # torch's scaler hands itself to `step`, where the signature shows it.
    _step_supports_amp_scaling = True
    _custom_amp_unscale_grads = True

    #: The factor that the device has, if it is a constant, and of what.
    _factor_there: Any = None

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        adam_w_mode: bool = True,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        dtype: torch.dtype = torch.float32,
        grad_sync_dtype: torch.dtype | None = None,
        param_sync_dtype: torch.dtype | None = None,
        device: torch.device | str | None = "cuda",
        process_group: Any = None,
        distributed_process_group: Any = None,
        redundant_process_group: Any = None,
        average_grad_sync: bool = True,
        overlap_grad_sync: bool = True,
        overlap_param_sync: bool = False,
        bucket_cap_mb: float = 100.0,
        pipeline_size: int = 2,
        contiguous_param_buffer: bool = False,
        contiguous_grad_buffer: bool = False,
        store_params: bool = True,
        store_param_remainders: bool = False,
        with_scaled_states: bool = False,
        nccl_ub: bool = False,
        capturable: bool = False,
        *,
        maximize: bool = False,
        on_nonfinite: str = "skip",
        missing_grad: str = "skip",
    ) -> None:
        check_adam(lr, betas, eps, weight_decay)
        self._storage = check_storage(
            dtype,
            grad_sync_dtype,
            param_sync_dtype,
            store_params,
            store_param_remainders,
            with_scaled_states,
        )
        if on_nonfinite not in ("skip", "propagate"):
            raise ValueError(
                "expects on_nonfinite 'skip' or 'propagate', but got "
                f"'{on_nonfinite}'"
            )
        if missing_grad not in ("skip", "zero"):
            raise ValueError(
                "expects missing_grad 'skip' or 'zero', but got "
                f"'{missing_grad}'"
            )
        if nccl_ub and not contiguous_grad_buffer:
            raise RuntimeError("nccl_ub expects contiguous_grad_buffer")
        if bucket_cap_mb <= 0:
            raise ValueError(
                f"expects a positive bucket_cap_mb, but got {bucket_cap_mb}"
            )
        self.dtype = dtype
        self.grad_sync_dtype = self._storage.grad_sync_dtype
        self.param_sync_dtype = self._storage.param_sync_dtype
        self.average_grad_sync = average_grad_sync
        self.overlap_grad_sync = overlap_grad_sync
        self.overlap_param_sync = overlap_param_sync
        self.greedy_grad_copy = overlap_grad_sync
        self.bucket_cap_mb = bucket_cap_mb
        self.pipeline_size = pipeline_size
        self.contiguous_param_buffer = contiguous_param_buffer
        self.contiguous_grad_buffer = contiguous_grad_buffer
        self.store_params = store_params
        self.store_param_remainders = store_param_remainders
        self.with_scaled_states = with_scaled_states
        self.nccl_ub = nccl_ub
        self.capturable = capturable
        self.on_nonfinite = on_nonfinite
        self.missing_grad = missing_grad
        self._amsgrad, self._maximize = amsgrad, maximize
        self._adam_w_mode = adam_w_mode
        self._mesh = make_mesh(
            process_group, distributed_process_group, redundant_process_group
        )
        self.process_group = self._mesh.process_group
        self.distributed_process_group = self._mesh.distributed_group
        self.redundant_process_group = self._mesh.redundant_group
        self.distributed_size = self._mesh.shard
        self.distributed_rank = self._mesh.shard_rank
        self.redundant_size = self._mesh.replicate
        self.process_group_size = self._mesh.size
        self._scaler_key = id(self)
        self._skips, self._warned = 0, False
        self._start_management()
        self._start_gather()
        self._sync = GradSync(
            overlap=overlap_grad_sync, contiguous=contiguous_grad_buffer
        )
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "bias_correction": bias_correction,
        }
        Optimizer.__init__(self, params, self._defaults(defaults))
        self.device = self._find_device(device)
        self._factors = factors.Factors(self.device)
        self._group = connect(self._mesh, self.device)
        self._constructed = True
        self._plan()
        self._broadcast_params()
        clip.alive.add(self)

    def _defaults(self, adam: dict[str, Any]) -> dict[str, Any]:
        """What groups start with; other rules have other hyper-parameters."""
        return adam

    def _find_device(self, device: torch.device | str | None) -> torch.device:
        found = {
            param.device
            for group in self.param_groups
            for param in group["params"]
        }
        if len(found) > 1:
            raise ValueError(
                "expects all parameters on one device, but got "
                f"{sorted(map(str, found))}"
            )
        own = found.pop() if found else torch.device(device or "cpu")
        wanted = torch.device(device) if device is not None else own
        # "cuda", apex's default, means the parameters' device.
        if str(device) != "cuda" and wanted.type != own.type:
            raise ValueError(
                f"expects parameters on {wanted}, but got them on {own}"
            )
        return own

    def _broadcast_params(self) -> None:
        if self._mesh.size == 1:
            return
        source = self._mesh.ranks[0]
        with torch.no_grad():
            for member in self._buckets.members:
                value = member.param.detach()
                if value.numel():
                    whole = torch.as_strided(
                        value, (value.numel(),), (1,), value.storage_offset()
                    )
                    dist.broadcast(
                        whole, src=source, group=self._mesh.process_group
                    )

    # === The step ============================================================

    def step(
        self,
        closure: Callable[[], Any] | None = None,
        *,
        grad_scaler: Any = None,
    ) -> Any:
        """Updates the parameters, and gathers them.

        Args:
            closure: reevaluates the model (forward and backward); its value
                is returned.
            grad_scaler: torch's gradient scaler; given by ``scaler.step``.

        Raises:
            RuntimeError: torch's scaler has unscaled a part of the gradients,
                or a mode of a group changed.
            ValueError: a hyper-parameter is not finite.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            self._step(grad_scaler)
        return loss

    def _step(self, grad_scaler: Any) -> None:
        self._touch()
        self.grad_sync()
        scaled = factors.before_step(self, grad_scaler)
        updater = self._engine.updater
        self._check_modes()
        for index, group in enumerate(self.param_groups):
            self._engine.set_hyper(index, self._hyper(group))
        self._engine.set_present(
            self._sync.present, everyone=self.missing_grad == "zero"
        )
        factor = self._factors.total(self._base_factor())
        field = updater.field("factor")
        if isinstance(factor, Tensor):
            field.copy_(factor)
            self._factor_there = None
        elif (updater, factor) != self._factor_there or self._is_capturing():
            # A replay must not go on with what an eager step left there.
            field.fill_(factor)
            self._factor_there = (updater, factor)
        found = updater.field("found_inf")
        if scaled or self.on_nonfinite == "skip":
            found.copy_(self._found)  # of grad_sync
        else:
            found.zero_()
        updater.finish()
        self._mark_written()
        self._gather_params()
        if not scaled and self.on_nonfinite == "skip":
            self._watch_skips()

    def _is_capturing(self) -> bool:
        on_gpu = self.device.type == "cuda"
        return on_gpu and torch.cuda.is_current_stream_capturing()

    def _mark_written(self) -> None:
        self._buckets.mark_written()

    def _hyper(self, group: dict[str, Any]) -> tuple[Any, ...]:
        beta1, beta2 = group["betas"]
        return (
            number(group["lr"], "lr"),
            number(beta1, "beta1"),
            number(beta2, "beta2"),
            number(group["eps"], "eps"),
            number(group["weight_decay"], "weight_decay"),
        )

    def push_hyperparameters(self) -> None:
        """Uploads hyper-parameters, before the replay of a captured step."""
        for index, group in enumerate(self.param_groups):
            self._engine.set_hyper(index, self._hyper(group))
        self._engine.push()

    def _watch_skips(self) -> None:
        if not self._engine.updater.mirror("found_inf"):
            self._skips = 0
            return
        self._skips += 1
        if self._skips >= SKIPS_BEFORE_WARNING and not self._warned:
            self._warned = True
            warnings.warn(
                f"{self._skips} steps in a row were skipped, because gradients "
                "were inf or nan",
                RuntimeWarning,
                stacklevel=5,
            )

    @property
    def skipped_steps(self) -> int:
        """Steps that changed nothing, as far as is known without waiting."""
        if not self._engine.has_updater:
            return 0
        return int(self._engine.updater.mirror("skipped"))

    @property
    def step_was_skipped(self) -> bool:
        """Whether the last step that has finished changed nothing."""
        if not self._engine.has_updater:
            return False
        return bool(self._engine.updater.mirror("found_inf"))

    # === Saving and loading ==================================================

    def state_dict(
        self, *, state_dict_format: int = 2, gather_on_root: bool = True
    ) -> dict[str, Any]:
        """Whole tensors on the CPU of every rank; a collective.

        Args:
            state_dict_format: 2; format 1 cannot be written.
            gather_on_root: of format 1; ignored.

        Returns:
            ``{"state": {"step", 0: {"param", "exp_avg", "exp_avg_sq"}, ...},
            "param_groups": [...], "format": 2}``; a parameter whose own count
            of steps differs has a ``"step"`` too.

        Raises:
            ValueError: another format.
        """
        del gather_on_root
        if state_dict_format != checkpoint.FORMAT:
            raise ValueError(
                f"expects state_dict_format {checkpoint.FORMAT}, but got "
                f"{state_dict_format}"
            )
        if "_kept_state" in self.__dict__:
            return self.__dict__.pop("_kept_state")
        with torch.no_grad():
            return checkpoint.save(self, keep=True)

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gathers now, and keeps the whole dict on one rank only.

        The next ``state_dict()`` returns it there, and hyper-parameters only
        on the other ranks. A collective.
        """
        keep = self._mesh.size == 1 or dist.get_rank() == self._mesh.ranks[to]
        with torch.no_grad():
            self._kept_state = checkpoint.save(self, keep=keep)

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a dict of format 2 or of ``torch.optim.AdamW`` in place.

        Every rank is given the whole dict. Parameters are refreshed from the
        dict's exact copies.

        Raises:
            ValueError: format, groups or shapes are wrong; nothing has
                changed then.
        """
        checkpoint.load(self, state_dict)

    def __setattr__(self, name: str, value: Any) -> None:
        """Lets torch's scaler see through whoever replaces ``step``."""
        if name == "step" and not hasattr(value, "__wrapped__"):
            # torch looks for `grad_scaler` in the signature of `step`.
            with contextlib.suppress(AttributeError, TypeError):
                value.__wrapped__ = type(self).step.__get__(self)
        super().__setattr__(name, value)

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("DistributedFusedAdam cannot be copied")

    def __reduce__(self) -> Any:
        raise TypeError("DistributedFusedAdam cannot be pickled")

    def parameters(self) -> Iterable[Tensor]:
        """All parameters, group by group."""
        for group in self.param_groups:
            yield from group["params"]

    def parameter(self, *args: Any) -> Tensor:
        """The parameter of a group and an index in it."""
        group, index = args
        return self.param_groups[group]["params"][index]
