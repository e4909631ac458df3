"""What tests share: toys, fakes, readers of recordings, and slow twins of compiled code."""
