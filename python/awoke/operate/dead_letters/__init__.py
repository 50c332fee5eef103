"""Dead letters that were written: read, selected, grouped, sent again. For the command line and the console."""
