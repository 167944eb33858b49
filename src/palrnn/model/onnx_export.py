"""Export of one step as an ONNX graph, for runtimes without Python: ``z (batch, M) -> next (batch, M)``.

Every family is linear maps around one ReLU,

    next = z L' + relu(z G' + g) R' + b,

so that the graph is two or three products. A runtime iterates it; the first N units are the observations.
"""

from __future__ import annotations

import os
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from palrnn.engine.checks import Floats, as_path
from palrnn.engine.files import write_bytes
from palrnn.model.families.alrnn import ALRNN
from palrnn.model.families.shallow import ClippedShallowPLRNN, ShallowPLRNN
from palrnn.model.palrnn import drift_of

# of 2021: runtimes of that age and newer read them
_OPSET, _IR = 13, 8


class Step(NamedTuple):
    """The parts of a step: ``L (M, M)``, ``b (M,)`` and, for each ReLU, ``G (H, M)``, ``g (H,)``, ``R``."""

    linear: Floats
    bias: Floats
    gates: list[tuple[Floats, Floats, Floats]]


def export_onnx(model: Any, path: str | os.PathLike[str]) -> None:
    """Write one step of a surrogate, or of the drift of a PAL-RNN, as an ONNX model in float64.

    Its input ``z`` and its output ``next`` are states ``(batch, M)`` in the model's coordinates; a state to
    start from is ``model.embed(x)``. The numbers of units, observed and gated ones are among its properties.
    For AL-RNNs and shallow PLRNNs without external inputs. Needs onnx: ``pip install 'palrnn[onnx]'``.
    """
    drift = drift_of(model)
    if drift.input_dim:
        raise ValueError(f"model must have no external inputs, has {drift.input_dim}: only the state goes in")
    step, file = step_parts(drift), as_path(path)
    try:
        import onnx
        from onnx import helper
    except ImportError:
        raise ValueError("exporting to ONNX needs onnx: pip install 'palrnn[onnx]'") from None
    constants: dict[str, Floats] = {"L": step.linear.T, "b": step.bias}
    nodes = [
        helper.make_node("MatMul", ["z", "L"], ["linear"]),
        helper.make_node("Add", ["linear", "b"], ["sum"]),
    ]
    total = "sum"
    for k, (gate_map, offset, weights) in enumerate(step.gates):
        constants |= {f"G{k}": gate_map.T, f"g{k}": offset, f"R{k}": weights.T}
        chain = [
            ("MatMul", ["z", f"G{k}"], f"input{k}"),
            ("Add", [f"input{k}", f"g{k}"], f"gate{k}"),
            ("Relu", [f"gate{k}"], f"open{k}"),
            ("MatMul", [f"open{k}", f"R{k}"], f"part{k}"),
            ("Add", [total, f"part{k}"], f"sum{k}"),
        ]
        nodes += [helper.make_node(kind, inputs, [output]) for kind, inputs, output in chain]
        total = f"sum{k}"
    nodes.append(helper.make_node("Identity", [total], ["next"]))
    state: list[Any] = [onnx.TensorProto.DOUBLE, ["batch", drift.latent_dim]]
    graph = helper.make_graph(
        nodes,
        "step",
        [helper.make_tensor_value_info("z", *state)],
        [helper.make_tensor_value_info("next", *state)],
        [
            onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
            for name, array in constants.items()
        ],
    )
    made = helper.make_model(
        graph, producer_name="palrnn", ir_version=_IR, opset_imports=[helper.make_opsetid("", _OPSET)]
    )
    sizes = {name: str(getattr(drift, name)) for name in ("latent_dim", "observed_dim", "gated")}
    helper.set_model_props(made, sizes)
    onnx.checker.check_model(made, full_check=True)
    write_bytes(file, made.SerializeToString())


@singledispatch
def step_parts(drift: Any) -> Step:
    """Return the parts of a step of ``drift``; a further family is registered by its type."""
    raise ValueError(f"model must be an AL-RNN or a shallow PLRNN, got {type(drift).__name__}")


@step_parts.register
def _(drift: ALRNN) -> Step:
    first = drift.latent_dim - drift.gated
    linear = np.diag(drift.A)
    linear[:, :first] += drift.W[:, :first]
    if drift.gated == 0:
        return Step(linear, drift.h, [])
    picked = np.eye(drift.latent_dim)[first:]
    return Step(linear, drift.h, [(picked, np.zeros(drift.gated), drift.W[:, first:])])


@step_parts.register
def _(drift: ShallowPLRNN) -> Step:
    return Step(np.diag(drift.A), drift.h1, [(drift.W2, drift.h2, drift.W1)])


@step_parts.register
def _(drift: ClippedShallowPLRNN) -> Step:
    without = (drift.W2, np.zeros(len(drift.h2)), -drift.W1)
    return Step(np.diag(drift.A), drift.h1, [(drift.W2, drift.h2, drift.W1), without])
