"""Sockets, deadlines and HTTP for the loops of a supervisor, an app's command socket and its HTTP endpoint."""
