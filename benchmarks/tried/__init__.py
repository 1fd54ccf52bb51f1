"""What was tried and is not used, with what it gave."""
