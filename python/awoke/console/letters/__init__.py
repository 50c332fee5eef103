"""Dead letters as the console shows them, groups them, compares their attempts, and sends them again."""
