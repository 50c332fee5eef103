"""Decodes messages by the schemas that they name, without types of the app: for the command line and the console."""
