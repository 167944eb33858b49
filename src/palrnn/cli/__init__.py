"""The `palrnn` command. Each command is one file here, calls the public API and nothing private."""
