"""Many models of one series: how much the result depends on the data, or on chance."""

from palrnn.ensembles.bootstrap import bootstrap
from palrnn.ensembles.ensemble import Ensemble
