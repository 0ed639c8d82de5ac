"""What the models of a session have used, what it cost, and where it must stop."""
