"""OpenTelemetry: spans and metrics of agents, by the conventions for generative AI."""
