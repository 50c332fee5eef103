"""What must hold before anything runs: the installation, extras, arguments and signatures."""
