"""Text for people: printable characters, durations, hidden secrets, exit codes."""
