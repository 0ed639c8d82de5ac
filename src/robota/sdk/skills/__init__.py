"""Skills: directories with a `SKILL.md`, and single files as commands. Found, rendered, offered to models."""
