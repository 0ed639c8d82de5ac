"""What the model knows about a project: instructions, rules, references, and the system prompt with them."""
