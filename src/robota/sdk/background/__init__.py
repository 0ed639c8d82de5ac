"""Background tasks: agents, processes and scheduled prompts that work beside the conversation."""
