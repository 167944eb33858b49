"""The sections of the report, one file each: ``section(runs)`` returns one, or None if no run has results."""
