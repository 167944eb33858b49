"""What is compiled for learning by teacher forcing."""
