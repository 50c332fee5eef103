"""Messages of topics as the console shows them: read by place or time, searched, decoded, and hidden until allowed."""
