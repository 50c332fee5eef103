"""What must hold before anything runs: the installation, extras and arguments."""
