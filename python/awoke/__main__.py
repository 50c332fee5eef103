"""`python -m awoke`: the command line, where its script is not on the path."""

from awoke.cli import main

if __name__ == "__main__":
    main()
