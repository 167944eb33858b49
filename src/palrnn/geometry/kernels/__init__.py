"""What is compiled for the geometry."""
