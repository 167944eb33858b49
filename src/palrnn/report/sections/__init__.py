"""The sections of the report, one file each, registered by `palrnn.report.registry.section`."""
