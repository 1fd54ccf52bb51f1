"""What ``swsearch bench`` measures."""
