"""The commands of a chat: a line that begins with one ``/``. Each shows what is now and decides nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.loop import Phase, unanswered
from actors.messages import Denial
from actors.text import clip, listed
from orchestrator.capability import Capability
from orchestrator.cli.dialogue.texts import MAX_LINE
from orchestrator.cli.line import exact
from orchestrator.facts import NeedsApproval
from orchestrator.focus import OPEN, Policy
from orchestrator.workflows.section import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from orchestrator.cli.dialogue.screen import Screen
    from orchestrator.cli.dialogue.talk import Talk
    from orchestrator.facts import Verdict
    from orchestrator.journal.state import ActorState
    from orchestrator.member import Member
    from orchestrator.supervisor import Supervisor

__all__ = ["HELP", "Slash"]

HELP = """\
/tools           every tool of the agent and what would be said of it in the next turn
/tree            the agents of this session, each with what it does
/approvals       what waits for a person's answer
/deny NAME...    the next turns do without these tools
/allow NAME...   the next turns have only these tools
/reset           the next turns have every tool again
/stop            stop what runs, background children too; Ctrl-C ends the running turn only
/help            this
/quit            end the chat; it can be taken up again. Ctrl-D does the same
A line that ends with \\ goes on in the next; \"\"\" begins a text of several lines and ends it.
A text that begins with / is typed with //."""
MAX_TEXT = 100


class Slash:
    """The commands of one chat. ``policy`` is the focus of the turns that begin from now on."""

    def __init__(self, screen: Screen, supervisor: Supervisor, talk: Talk, root: Member) -> None:
        self.policy = OPEN
        self._screen = screen
        self._supervisor = supervisor
        self._talk = talk
        self._root = root
        self._shows: dict[str, Callable[[], Iterator[str]]] = {
            "/help": lambda: iter(HELP.split("\n")),
            "/tools": self.tools,
            "/tree": self.tree,
            "/approvals": self.approvals,
        }
        self._sets: dict[str, Callable[[tuple[str, ...]], Policy]] = {
            "/deny": self._denied,
            "/allow": self._allowed,
            "/reset": lambda _: OPEN,
        }

    def run(self, line: str) -> str:
        """Do what *line* says; return the commands ``/stop`` and ``/quit``, which are the conversation's to do."""
        name, *words = line.split()
        if name in ("/stop", "/quit"):
            return name
        if name in self._shows:
            for each in self._shows[name]():
                self._screen.say(clip(each, MAX_LINE))
        elif name in self._sets:
            self._focus(name, tuple(words))
        else:
            known = (*self._shows, *self._sets, "/stop", "/quit")
            remedy = nearest(name, known)
            self._screen.say(f"there is no command {clip(name, MAX_TEXT)}. {remedy} // begins a text with /.")
        return ""

    def tools(self) -> Iterator[str]:
        """Yield a line for each tool of the root: what the decision says of it for a turn that begins now."""
        member, state = self._root, self._supervisor.journal.state
        incarnation = state.actors[member.path].incarnation
        capability = Capability(self._supervisor.bridge, member, "", self.policy, None, incarnation)
        catalog = capability.catalog()
        wide = max(len(item.tool.name) for item, _ in catalog)
        chart = member.resolved.definition.tools.states
        if chart is not None:
            yield f"in the state {state.workflow or chart.initial}:"
        for item, verdict in catalog:
            said, more = said_of(verdict)
            about = item.tool.description.partition("\n")[0]
            yield f"{said:<14}  {item.tool.name:<{wide}}  {item.tool.access.value:<8}  {more or clip(about, MAX_TEXT)}"

    def tree(self) -> Iterator[str]:
        """Yield a line for each living actor, children below their parents, and how many have ended."""
        state = self._supervisor.journal.state
        ended = sum(1 for actor in state.actors.values() if actor.exited)
        waiting = [self._root.path]
        while waiting:
            actor = state.actors.get(waiting.pop())
            if actor is None:
                continue
            waiting.extend(reversed(state.children.get(actor.path, [])))
            if not actor.exited:
                yield self._actor(actor)
        if ended:
            yield f"{ended} {'actor has' if ended == 1 else 'actors have'} ended"

    def approvals(self) -> Iterator[str]:
        """Yield a line for each question that waits for an answer."""
        pending = self._supervisor.approvals.pending()
        for name in pending:
            question = self._supervisor.approvals.question(name)
            yield f"{name}  {question.actor} asks to run {question.tool}: {exact(question.arguments)}"
        if not pending:
            yield "nothing waits for an answer"

    def _actor(self, actor: ActorState) -> str:
        resolved = self._supervisor.registry.get(actor.spawned.fingerprint)
        role = actor.spawned.agent if resolved is None else resolved.definition.role.value
        depth, turns = actor.path.count("/"), self._talk.turns[actor.path]
        where = ", in the background" if actor.spawned.background else ""
        count = f"{turns} {'turn' if turns == 1 else 'turns'}"
        return f"{'  ' * depth}{actor.path}  {role}{where}  {self._doing(actor)}  {count}"

    def _doing(self, actor: ActorState) -> str:
        member = self._supervisor.members.get(actor.path)
        if not actor.waiting or member is None:
            return "idle"
        loop = member.actor.state
        if loop.phase is Phase.TOOLS:
            names = listed(sorted({call.name for call in unanswered(loop)}))
            asked = self._supervisor.journal.state.asks(actor.path)
            return f"busy with {names}{', a person is asked' if asked else ''}"
        return "busy with its model"

    def _focus(self, name: str, words: tuple[str, ...]) -> None:
        names = self._root.resolved.names
        unknown = [word for word in words if word not in names]
        if unknown or (not words and name != "/reset"):
            what = f"there is no tool {clip(unknown[0], MAX_TEXT)}. " if unknown else f"{name} wants names of tools. "
            self._screen.say(what + (nearest(unknown[0], names) if unknown else f"There are: {listed(names)}."))
            return
        self.policy = self._sets[name](words)
        self._screen.say(f"from the next turn on: {focus_text(self.policy)}")

    def _denied(self, words: tuple[str, ...]) -> Policy:
        return Policy(self.policy.allowed, self.policy.denied | set(words))

    def _allowed(self, words: tuple[str, ...]) -> Policy:
        return Policy(words, self.policy.denied - set(words))


def said_of(verdict: Verdict) -> tuple[str, str]:
    """Return what a verdict is called, and the code, message and remedy of a refusal."""
    if isinstance(verdict, Denial):
        return "denied", f"{verdict.code}: {verdict.text}"
    return ("needs approval", "") if isinstance(verdict, NeedsApproval) else ("permitted", "")


def focus_text(policy: Policy) -> str:
    """Return *policy* in words."""
    allowed = (
        "every tool" if policy.allowed is None else f"only {listed(sorted(policy.allowed))} and what looks things up"
    )
    return f"{allowed}{f', without {listed(sorted(policy.denied))}' if policy.denied else ''}"
