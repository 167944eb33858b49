"""What is compiled for the invariants."""
