"""The client of a server: connection, requests, jobs and their results."""
