"""The console in the browser. Nothing else of awoke imports it: its libraries are the extra `console`."""
