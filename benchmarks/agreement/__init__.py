"""Whether it says what the peers say."""
