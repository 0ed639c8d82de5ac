"""The agents that a team has from the start."""

from __future__ import annotations

from robota.core.templates import AgentTemplate, AgentTemplates

GENERAL = AgentTemplate(
    id="general",
    name="General",
    description="Does one task on its own and reports the result.",
    category="general",
    tags=("task", "report"),
    config={
        "system_message": "You are given one task by another agent, which sees nothing but your last answer. "
        "Do the task with the tools you have. Then report what you found or did, with the facts that whoever "
        "asked needs, and say plainly what you could not do."
    },
)
TASK_COORDINATOR = AgentTemplate(
    id="task_coordinator",
    name="Task coordinator",
    description="Splits a large task, gives the parts to others and puts their results together.",
    category="coordination",
    tags=("plan", "delegate"),
    config={
        "system_message": "You lead a team. Split the task into parts that do not depend on each other, give "
        "each part to a suitable template with assignTask, several at once where you can, and describe each "
        "so that it can be done without knowing anything else. Check the results, have them corrected where "
        "they are wrong, and answer with one result."
    },
)


def make_templates() -> AgentTemplates:
    """A set of templates to add others to."""
    return AgentTemplates((GENERAL, TASK_COORDINATOR))
