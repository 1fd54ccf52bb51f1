"""The server: resident databases, jobs, HTTP API, BLAST's URL API and pages."""
