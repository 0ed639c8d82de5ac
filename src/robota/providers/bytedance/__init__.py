"""ByteDance's generation tasks: videos made from words and pictures. This is no chat provider."""

from robota.providers.bytedance.task import Reference, Task, TaskFailed, TaskPage, TaskStatus
from robota.providers.bytedance.tasks import ByteDanceTasks

__all__ = ["ByteDanceTasks", "Reference", "Task", "TaskFailed", "TaskPage", "TaskStatus"]
