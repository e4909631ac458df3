"""What is of this package: how shipped policies were made, what they are worth, and whether intervals hold."""
