"""What an app remembers: tables, whose rows are committed together with the messages that changed them."""
