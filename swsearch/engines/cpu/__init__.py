"""The CPU engine, on the C++ extension."""
