"""What is compiled for the model room."""
