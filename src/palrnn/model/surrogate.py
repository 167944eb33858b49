"""What every family of surrogates is: a piecewise-affine map with linear gates.

    u = G z + g          P gate inputs of a state z (M,)
    c = 1{u > 0}         the code, which names a region of state space
    z' = J(c) z + b(c)   the map F, affine in each region; a driven model adds C s (`palrnn.model.inputs`)

The first N latent units are the observed ones: teacher forcing sets them, losses compare them with the data.
A family is one class with the members of `Surrogate` and one call of `register_family`; everything else in
the package follows from them (`palrnn.model.engine` is the plain arithmetic), and `check_surrogate` says
whether they agree with each other. A family that is worth it registers fast paths for its own type.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import getattr_static
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palrnn.engine.checks import Floats, as_shape

Arrays = Mapping[str, NDArray[Any]]
MEMBERS = (
    "latent_dim",
    "observed_dim",
    "gated",
    "input_dim",
    "theta",
    "with_theta",
    "embed",
    "arrays",
    "from_arrays",
    "gate_map",
    "affine",
    "pullback",
)


@runtime_checkable
class Surrogate(Protocol):
    """A model of one family: M latent units, the first N observed, P gates, p drift parameters ``theta``.

    Immutable. Some more members are optional:

    - ``gate_pullback(z (..., M), r (..., P)) -> (..., p)``, which is r^T d(G z + g)/dtheta, where the gates
      have parameters;
    - ``embedding (e,)``, ``with_embedding(values)`` and ``embed_pullback(x (..., N), r (..., M)) -> (...,
      e)``, which is r^T dz/d(embedding), where the embedding is trained;
    - ``C (M, K)``, where ``input_dim`` is K > 0: its entries, row-major, are the last ones of theta, `arrays`
      holds it as "C", and ``affine``, ``pullback`` and ``gate_pullback`` speak of F alone, without them;
    - a classmethod ``initial(observed_dim, *, latent_dim, gated, init_std, seed)``, the random start of
      `train`.
    """

    @property
    def latent_dim(self) -> int:
        """M, the number of latent units."""
        ...

    @property
    def observed_dim(self) -> int:
        """N, the number of observed units, the first ones."""
        ...

    @property
    def gated(self) -> int:
        """P, the number of gates."""
        ...

    @property
    def input_dim(self) -> int:
        """The number of external inputs; 0 for an autonomous model."""
        ...

    @property
    def theta(self) -> Floats:
        """The drift parameters, ``(p,)``."""
        ...

    def with_theta(self, theta: ArrayLike) -> Self:
        """Return the same model with other drift parameters ``(p,)``."""
        ...

    def embed(self, x: ArrayLike) -> Floats:
        """Return a latent state for each observation, ``(..., N) -> (..., M)``; its first N entries are x."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that makes the model, by name, for a checkpoint."""
        ...

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Return the model that `arrays` came from; an array that is missing is a KeyError."""
        ...

    def gate_map(self) -> tuple[Floats, Floats]:
        """Return ``G (P, M)`` and ``g (P,)``."""
        ...

    def affine(self, codes: NDArray[Any]) -> tuple[Floats, Floats]:
        """Return ``J (..., M, M)`` and ``b (..., M)`` of the regions ``codes (..., P)``."""
        ...

    def pullback(self, z: Floats, codes: NDArray[Any], r: Floats) -> Floats:
        """Return r^T dF/dtheta of F = J(c) z + b(c), for ``z (..., M)``, ``codes (..., P)``, ``r (..., M)``.

        The leading axes broadcast; the result is ``(..., p)``, without the M K entries of C.
        """
        ...


def training_vector(model: Any) -> Floats:
    """Return all that training changes: theta, and the parameters of the embedding where there are any."""
    return np.concatenate([model.theta, model.embedding]) if hasattr(model, "embedding") else model.theta


def with_training_vector(model: Any, vector: ArrayLike) -> Any:
    """Return the model whose `training_vector` is ``vector``."""
    size = model.theta.size
    values = as_shape(vector, "vector", (training_vector(model).size,))
    moved = model.with_theta(values[:size])
    return moved.with_embedding(values[size:]) if values.size > size else moved


_FAMILIES: dict[str, type[Any]] = {}


def register_family(name: str, cls: type[Any]) -> None:
    """Make a family known by ``name``, under which checkpoints and `TrainConfig` refer to it.

    Call it in the module that defines ``cls``, so that importing the module is enough.
    """
    # what the protocol itself holds are no members, only what they are to be
    stubs = vars(Surrogate)
    missing = [m for m in MEMBERS if getattr_static(cls, m, stubs[m]) is stubs[m]]
    # dimensions may be fields of a dataclass, its own or inherited ones, which only its instances have
    fields = {*getattr(cls, "__annotations__", {}), *getattr(cls, "__dataclass_fields__", {})}
    if not isinstance(name, str) or not isinstance(cls, type) or set(missing) - fields:
        lacks = ", ".join(missing) or "nothing"
        raise ValueError(
            f"name and cls must be a text and a Surrogate class, got {name!r} and {cls!r}, "
            f"which lacks {lacks}"
        )
    known = _FAMILIES.get(name)
    # a class that was defined again, as by reloading its module, takes its own place
    if known is not None and _origin(known) != _origin(cls):
        raise ValueError(f"name must be new, got {name!r}, which is {known.__module__}.{known.__qualname__}")
    _FAMILIES[name] = cls


def family(name: str) -> type[Any]:
    """Return the class of the family ``name``."""
    if not isinstance(name, str) or name not in _FAMILIES:
        known = ", ".join(sorted(_FAMILIES))
        raise ValueError(
            f"family must be one of {known}, got {name!r}; import the module that registers yours"
        )
    return _FAMILIES[name]


def family_name(model: Surrogate) -> str:
    """Return the name under which the family of ``model`` is registered."""
    for name, cls in _FAMILIES.items():
        if type(model) is cls:
            return name
    raise ValueError(f"model must be of a registered family, got {type(model).__name__}: see register_family")


def _origin(cls: type[Any]) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__
