"""Reading a journal back: as a log of events, and as the conversation it holds."""
