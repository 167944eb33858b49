"""A real series from end to end: the yearly number of sunspots, 1700 to 2008, and a model of them.

One column, 309 values, as `statsmodels` carries them. `reconstruct` puts the past beside the present, learns
from the first four fifths and keeps the rest to judge by; `--updates` shortens it.
"""

from __future__ import annotations

import argparse

import numpy as np
from matplotlib.figure import Figure
from statsmodels.datasets import sunspots

import palrnn
from palrnn.engine.progress import quiet
from palrnn.engine.style import BLACK, BLUE, VERMILION, save_figure, styled
from palrnn.invariants import power_spectrum

#: Years of a forecast, of the free run that is shown, and of the one whose spectrum is.
AHEAD, SHOWN, LONG = 11, 160, 20_000


def drawn(result: palrnn.Reconstruction, years: np.ndarray, x: np.ndarray) -> Figure:
    """Draw the held-out years with forecasts from some of them, a free run, and both spectra."""
    held = result.held[:, 0]
    begin = len(x) - len(held)
    free = result.generate(LONG, discard=100)[:, 0]
    figure = Figure(figsize=(6.8, 5.4), layout="constrained")
    data, own, spectra = figure.subplots(3, 1)
    data.plot(years[:begin], x[:begin, 0], color="0.6", label="learned from")
    data.plot(years[begin:], held, color=BLACK, label="held out")
    for row in range(0, len(held) - AHEAD, AHEAD):
        ahead = np.append(held[row], result.generate(AHEAD, x1=result.held[row])[:, 0])
        label = f"forecasts, {AHEAD} years each" if row == 0 else None
        data.plot(years[begin + row] + np.arange(AHEAD + 1), ahead, color=VERMILION, label=label)
    data.set(xlabel="year", ylabel="sunspots", xlim=(years[-1] - SHOWN, years[-1]))
    data.legend(fontsize=7, loc="upper left", ncols=3)
    data.set_ylim(top=1.25 * x.max())
    own.plot(free[:SHOWN], color=BLUE)
    own.set(xlabel="year of the model, running freely", ylabel="sunspots", xlim=(0, SHOWN))
    for series, colour, label in ((x[:, 0], "0.6", "data"), (free, BLUE, "free run")):
        # as wide a smoothing for both: two hundredths of a cycle a year
        power = power_spectrum(series[:, None], sigma=0.02 * len(series))[:, 0]
        rates = np.arange(len(power)) / len(series)
        spectra.semilogy(rates[1:], power[1:] * len(series), color=colour, label=label)
    spectra.set(xlabel="cycles a year", ylabel="power", yticks=[])
    spectra.legend(fontsize=7)
    return figure


def errors(result: palrnn.Reconstruction) -> str:
    """Return mean squared errors of forecasts on the held-out years, beside those of "as it is now"."""
    x = result.standardizer.transform(result.held)[:, :1]
    lines = ["years ahead   model   as it is now   (1: no better than the mean)"]
    for years in (1, 2, 3, AHEAD):
        own = [
            result.generate(years, x1=row)[-1, 0] - result.held[k + years, 0]
            for k, row in enumerate(result.held[:-years])
        ]
        still = x[years:, 0] - x[:-years, 0]
        spread = result.held[years:, 0].std()
        unit = result.standardizer.std[0]
        model, same = np.mean(np.square(own)) / spread**2, np.mean(still**2) * (unit / spread) ** 2
        lines.append(f"{years:11d}   {model:5.2f}   {same:12.2f}")
    return "\n".join(lines)


def main() -> None:
    """Learn, print the score card and the errors of forecasts, and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", nargs="?", default="sunspots.png")
    parser.add_argument("--updates", type=int, default=30_000)
    chosen = parser.parse_args()
    table = sunspots.load_pandas().data
    years, x = table["YEAR"].to_numpy(), table[["SUNACTIVITY"]].to_numpy()
    result = palrnn.reconstruct(x, dt=1.0, updates=chosen.updates, name="sunspots", progress=quiet)
    print(result.invariants(), errors(result), sep="\n")
    with styled():
        figure = drawn(result, years, x)
    save_figure(figure, chosen.picture)


if __name__ == "__main__":
    main()
