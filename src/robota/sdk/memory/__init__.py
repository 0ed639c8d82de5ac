"""What a project's sessions remember: notes in files that people read and change, saved when they agree."""
