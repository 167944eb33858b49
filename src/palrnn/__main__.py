"""`python -m palrnn`, for where the command `palrnn` is not on the path."""

from palrnn.cli.main import main

if __name__ == "__main__":
    main()
