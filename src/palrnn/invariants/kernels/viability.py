"""How long a run has followed the turn that it ends with."""

from __future__ import annotations

from palrnn.engine.kernel import kernel


@kernel
def followed(run, period, near, most, far):
    """Follow the last ``period`` steps of ``run (T, c)`` backwards; return for how long, up to ``most``.

    The turn is the polygon through the last ``period + 2`` states: it need not be a whole number of steps,
    and so is closed by one more. A state is looked for where the one after it was, or a few edges before, for
    one edge is what both move by in a step: it is compared with the turn at its own time, and not with all of
    it, since a long turn of a chaotic run is everywhere. A step is followed while its state is within
    ``near`` of these edges, by its largest coordinate. ``far (turns,)`` are the largest distances in each
    turn, the latest first.
    """
    dim, edges = run.shape[1], period + 1
    last = run.shape[0] - 1
    begin = last - edges
    edge = edges - 1
    for t in range(begin, max(0, last - most) - 1, -1):
        nearest, at = near + 1.0, edge
        for back in range(-1, 4):
            e = (edge - back) % edges
            along, square = 0.0, 0.0
            for i in range(dim):
                way = run[begin + e + 1, i] - run[begin + e, i]
                along += (run[t, i] - run[begin + e, i]) * way
                square += way * way
            along = min(1.0, max(0.0, along / square)) if square > 0.0 else 0.0
            distance = 0.0
            for i in range(dim):
                foot = run[begin + e, i] + along * (run[begin + e + 1, i] - run[begin + e, i])
                distance = max(distance, abs(run[t, i] - foot))
                if distance >= nearest:
                    break
            if distance < nearest:
                nearest, at = distance, e
        if not nearest <= near:
            return last - t - 1
        edge = at
        turn = (begin - t) // period
        far[turn] = max(far[turn], nearest)
    return min(most, last)
