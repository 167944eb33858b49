"""What every room stands on: the kernel compiler, argument checks, seeds, progress and safe files."""
