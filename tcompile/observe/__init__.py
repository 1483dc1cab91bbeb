"""The event stream and its readers. Imports nothing of tcompile."""
