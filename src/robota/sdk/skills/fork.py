"""Skills with `context: fork`: a subagent carries them out, and its report is the answer."""

from __future__ import annotations

from robota.sdk.agents.runner import AgentTask, Subagents
from robota.sdk.skills.calls import Fork
from robota.sdk.skills.skill import Skill, SkillError


def fork_with(subagents: Subagents) -> Fork:
    async def fork(skill: Skill, text: str) -> str:
        task = AgentTask(
            prompt=text,
            agent=skill.agent,
            description=f"skill {skill.name}",
            model=skill.model,
            is_fork_worker=True,
        )
        outcome = await subagents.run(task)
        if not outcome.success:
            raise SkillError(f"The subagent for the skill {skill.name!r} failed: {outcome.error}")
        return outcome.output

    return fork
