"""What a running app shows over HTTP, and the loop and the listening sockets that its commands come over, too."""
