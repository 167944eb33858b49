"""One teacher-forced update in PyTorch, the way a user would write it: a loop over time, autograd, RAdam."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from palrnn.model import ALRNN


def torch_update(
    model: ALRNN, series: np.ndarray, length: int, tau: int, rate: float
) -> Callable[[np.ndarray], float]:
    """Return a function that trains a copy of ``model`` on the batch at given starts and returns its loss."""
    torch.set_num_threads(1)
    x = torch.tensor(series, dtype=torch.float32)
    A, W, h, E = (
        torch.nn.Parameter(torch.tensor(part, dtype=torch.float32))
        for part in (model.A, model.W, model.h, model.E)
    )
    optimiser = torch.optim.RAdam([A, W, h, E], lr=rate)
    free, seen = model.latent_dim - model.gated, model.observed_dim

    def update(starts: np.ndarray) -> float:
        batch = x[torch.as_tensor(starts)[:, None] + torch.arange(length)]
        z = torch.cat([batch[:, 0], (batch[:, 0] @ E.T)[:, seen:]], dim=1)
        predictions = []
        for t in range(length - 1):
            if t > 0 and t % tau == 0:
                z = torch.cat([batch[:, t], z[:, seen:]], dim=1)
            z = A * z + torch.cat([z[:, :free], torch.relu(z[:, free:])], dim=1) @ W.T + h
            predictions.append(z[:, :seen])
        errors = torch.stack(predictions, dim=1) - batch[:, 1:]
        loss = errors.square().sum(dim=2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return float(loss.detach())

    return update
