"""A search job: what is asked for, what is scored, which subjects are kept, and the hits made of them."""
