"""The studies, one file (or, for the largest, one folder) each; what is here is found by `palrnn reproduce`."""
