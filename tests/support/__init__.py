"""What tests share: cases, fakes, and machines that stand for a GPU."""
