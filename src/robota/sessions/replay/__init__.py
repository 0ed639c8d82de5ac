"""Running a recorded session again: the same code, the recorded world."""
