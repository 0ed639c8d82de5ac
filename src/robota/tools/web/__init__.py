"""What the web tools share: reading pages safely, making them text, asking search services."""
