"""A server: databases that stay with their engines, jobs, an HTTP API, BLAST's URL API and pages."""
