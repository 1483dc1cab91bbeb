"""The kinds of values that capture knows: one file a kind."""
