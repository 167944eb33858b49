"""Searching for settings: `search`, and its result."""

from palrnn.searches.halving import search
from palrnn.searches.result import SearchResult
