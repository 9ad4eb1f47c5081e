"""`python -m grokscope` is the `grokscope` command."""

from grokscope.cli import main

main()
