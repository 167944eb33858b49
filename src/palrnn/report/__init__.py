"""Figures and the HTML report. Everything here draws from results; nothing here computes them."""
