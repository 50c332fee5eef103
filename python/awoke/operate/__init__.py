"""What an operator does with an app: dead letters, descriptions and files that are made from it."""
