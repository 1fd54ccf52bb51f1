"""The client of a server: requests, the connection, jobs and what they found."""
