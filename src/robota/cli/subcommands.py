"""First words that are no prompt, the module whose `command` answers to each, and what it is for.

A module is imported when its word is said.
"""

from __future__ import annotations

SUBCOMMANDS: dict[str, tuple[str, str]] = {
    "doctor": ("robota.cli.doctor", "What works here, what does not, and what mends it."),
    "model": ("robota.cli.model", "Models here and at services."),
    "provider": ("robota.cli.provider", "Who can answer, and their keys."),
    "setup": ("robota.cli.setup", "Choose who answers."),
    "testing": ("robota.cli.testing", "A scripted model to test against."),
    "tour": ("robota.cli.tour", "Five minutes with a scripted model, real tools and no key."),
}
