"""One actor: its definition, its authority, its pure loop, and the driver that runs it."""

from __future__ import annotations

from actors.definition import AgentDefinition, Skill, ToolSet
from actors.errors import ActorStopped, DefinitionError, MailboxFull, ToolFault
from actors.grants import Access, Budget, Grants
from actors.messages import Denial, Limits, ModelReply, StopReason, ToolCall, ToolResult, Usage
from actors.ports import Model, ModelError, ModelRequest
from actors.roles.role import Role
from actors.tools import Tool, ToolContext, tool

__all__ = [
    "Access",
    "ActorStopped",
    "AgentDefinition",
    "Budget",
    "DefinitionError",
    "Denial",
    "Grants",
    "Limits",
    "MailboxFull",
    "Model",
    "ModelError",
    "ModelReply",
    "ModelRequest",
    "Role",
    "Skill",
    "StopReason",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolFault",
    "ToolResult",
    "ToolSet",
    "Usage",
    "tool",
]
