"""Bundle plugins: directories that bring skills, commands, agents, hooks, servers, tools and rules along."""
