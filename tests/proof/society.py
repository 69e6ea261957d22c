"""Who is in a session and under which terms each turn runs, by the naive specification. No code of the kernel here.

A turn runs under the focus it was given. One born of a child's notice runs under the terms of the turn that started the
child (several: what all allow), one by a message under those of the actor's last turn, a child's task under the
narrowing of the turn that delegates, and without any focus.
"""

from __future__ import annotations

from tests.proof.naive import LOAN_CEILINGS, Held, Situation, capped, names_of, verdict
from tests.proof.people import Actor, Loan, Parked, Turn, key_of, written_out
from tests.proof.terms import OPEN_FOCUS, STATES, Cast, Focus, Holding, Node

__all__ = ["Society"]


class Society:
    """The naive account of one session."""

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self.principal = written_out(cast.principal)
        base = capped(cast.root.role, self.principal)
        self.root = Actor(cast.root.name, cast.root, None, base, base, cast.principal.calls)
        self.actors = {self.root.path: self.root}
        self.started = 1
        self.unresolved: set[tuple[str, str]] = set()
        self.state = next(iter(STATES))
        self.moves = 0
        self.rules: set[tuple[Node, str]] = set()

    def alive(self) -> list[Actor]:
        """Everyone who has not ended, in order of start."""
        return [actor for actor in self.actors.values() if not actor.gone]

    def decide(self, path: str, name: str, arguments: str | None, answer: str = "") -> str:
        """Say what becomes of a call, or with ``None`` of an offer, in the actor's present turn.

        *answer* is what a person has said to the call: ``yes``, ``no``, or ``other`` where it is not what was asked.
        """
        actor = self.actors[path]
        turn, now = actor.turns[0], self.authority(actor)
        lost = set(actor.lost)
        for loan in actor.loans:
            if loan.lender.gone:
                lost |= loan.held.authorities
        situation = Situation(
            names_of(actor.node.role, actor.node.tools, parent=bool(actor.node.children)),
            turn.focus.allowed,
            turn.focus.denied,
            now,
            frozenset(lost),
            actor.left == 0,
            self._full(actor),
            frozenset(self.unresolved),
            self.state if actor.node.staged else "",
            arguments is not None and actor.asked_at != self.moves,
            answer or self._consent(actor, arguments),
        )
        return verdict(name, arguments, situation)

    def authority(self, actor: Actor) -> Held:
        """What the actor may do now: its base, with what it has on loan, narrowed by its turn."""
        now = actor.base
        for loan in actor.loans:
            if not loan.lender.gone:
                now = now.either(loan.held)
        narrowing = actor.turns[0].narrowing
        return now if narrowing is None else now.both(narrowing)

    def _consent(self, actor: Actor, arguments: str | None) -> str:
        """What is known of a person's yes without asking: a rule that holds for these arguments."""
        if arguments is not None and any(
            node == actor.node and f'"key":"{key}"' in arguments for node, key in self.rules
        ):
            return "yes"
        return "ask" if self.cast.approver else ""

    def attempt(self, path: str, name: str, arguments: str) -> str:
        """Say what becomes of a call; one that is permitted is paid for."""
        actor = self.actors[path]
        said = self.decide(path, name, arguments)
        if said == "needs_approval":
            actor.parked = Parked(name, arguments, self.moves)
        else:
            self.done(actor, name, said)
        return said

    def done(self, actor: Actor, name: str, said: str) -> None:
        """A call is over, and the model is asked again; a call that ran is paid for and may move the workflow."""
        actor.steered = False
        actor.spent += said == "permitted"
        moves = STATES[self.state][1]
        if said == "permitted" and actor.node.staged and name in moves:
            self.move(moves[name])
        actor.asked_at = self.moves

    def move(self, state: str) -> None:
        """The workflow is in another state, or in the same one anew."""
        self.state = state
        self.moves += 1

    def answer(self, actor: Actor, answer: str, arguments: str, *, rule: bool) -> str:
        """A person has answered: the turn goes on, and the call is decided with that, all gates again."""
        parked = actor.parked
        assert parked is not None
        actor.parked = None
        if rule:
            self.rules.add((actor.node, key_of(arguments)))
        answered = "other" if answer == "yes" and parked.moves != self.moves else answer
        if (actor.node, key_of(arguments)) in self.rules and parked.name == "sign":
            answered = "yes"
        said = self.decide(actor.path, parked.name, arguments, answered)
        self.done(actor, parked.name, said)
        return said

    def retry(self, actor: Actor) -> None:
        """A parked call is decided once more, as after a resume; it may be refused by now."""
        parked = actor.parked
        assert parked is not None
        said = self.decide(actor.path, parked.name, parked.arguments)
        if said != "needs_approval":
            actor.parked = None
            self.done(actor, parked.name, said)

    def _full(self, actor: Actor) -> str:
        if actor.depth >= self.cast.depth:
            return "too_deep"
        alive = [child for child in actor.children if not child.gone]
        return "too_many_children" if len(alive) >= self.cast.alive else ""

    def accept(self, actor: Actor, focus: Focus, narrowing: Held | None, origin: str) -> Turn:
        """Give the actor a turn; it waits behind those it has."""
        turn = Turn(focus, narrowing, origin)
        actor.turns.append(turn)
        actor.last = (focus, narrowing)
        if len(actor.turns) == 1:
            actor.asked_at = self.moves
        return turn

    def spawn(self, parent: Actor, node: Node, *, kept: bool) -> Actor:
        """Start an actor with a part of what its parent holds of its own."""
        self.started += 1
        narrowing = None if kept else parent.turns[0].narrowing
        wanted = parent.base if narrowing is None else parent.base.both(narrowing)
        base = capped(node.role, wanted)
        path = f"{parent.path}/{node.name}-{self.started:04d}"
        limit = None if parent.left is None else parent.left // 2
        child = self.actors[path] = Actor(path, node, parent, base, base, limit, kept=kept)
        child.cause = None if kept else parent.turns[0]
        parent.children.append(child)
        return child

    def delegate(self, parent: Actor, node: Node, *, background: bool) -> Actor:
        """Start a child on a task; its turn has the narrowing of the turn that starts it, and no focus."""
        child = self.spawn(parent, node, kept=False)
        child.background = background
        task = self.accept(child, OPEN_FOCUS, parent.turns[0].narrowing, "delegate")
        if not background:
            parent.waits_for = task
        return child

    def message(self, child: Actor, narrowing: Held | None) -> None:
        """Join the child's turn if that is no wider than the sender's, else open one that is not."""
        if child.turns:
            present = child.turns[0].narrowing
            if narrowing is None or (present is not None and present.within(narrowing)):
                child.steered = True
                return
        focus, last = child.last
        if narrowing is not None:
            last = narrowing if last is None else last.both(narrowing)
        self.accept(child, focus, last, "send")

    def lendable(self, lender: Actor, borrower: Actor, what: Holding) -> bool:
        """Whether a loan would be made, and give the borrower anything."""
        amount = written_out(what)
        may = amount.within(lender.base) and amount.within(LOAN_CEILINGS[borrower.node.role])
        return may and not amount.within(borrower.base)

    def lend(self, lender: Actor, borrower: Actor, what: Holding) -> bool:
        """Lend until the borrower's present turn ends, unless it is more than either may have to do with."""
        amount = written_out(what)
        if not (amount.within(lender.base) and amount.within(LOAN_CEILINGS[borrower.node.role])):
            return False
        borrower.loans.append(Loan(lender, amount, borrower.turns[0]))
        return True

    def end(self, actor: Actor, *, cancelled: bool = False) -> None:
        """The actor's present turn is over."""
        turn, parent = actor.turns.pop(0), actor.parent
        actor.steered = False
        actor.waits_for = None
        actor.parked = None
        actor.asked_at = self.moves
        for loan in [loan for loan in actor.loans if loan.until is turn]:
            actor.loans.remove(loan)
            actor.lost |= loan.held.authorities
        if parent is not None and not parent.gone and turn.origin in ("delegate", "send", "notice"):
            if parent.waits_for is turn:
                parent.waits_for = None
                parent.steered = False
                parent.asked_at = self.moves
            elif not cancelled:
                turn.answered = turn.origin == "notice"
                parent.owed.append((actor, turn))
        self.settle(actor)

    def settle(self, actor: Actor) -> None:
        """Wake the actor with what it is owed, let it go if it is done, and see to its parent."""
        if not actor.turns:
            self._wake(actor)
        parent = actor.parent
        if parent is None or actor.gone:
            return
        if not actor.turns and not actor.kept and all(child.gone for child in actor.children):
            self.leave(actor)
        if not parent.turns:
            self.settle(parent)

    def _wake(self, actor: Actor) -> None:
        if any(not turn.answered for _, turn in actor.owed):
            focus, narrowing = self._joined(actor)
            actor.owed = []
            self.accept(actor, focus, narrowing, "notice")

    def _joined(self, actor: Actor) -> tuple[Focus, Held | None]:
        """What all turns that started the children allow."""
        allowed: frozenset[str] | None = None
        denied: frozenset[str] = frozenset()
        narrowing: Held | None = None
        for child, _ in actor.owed:
            cause = child.cause
            focus, narrowed = actor.last if cause is None else (cause.focus, cause.narrowing)
            denied |= focus.denied
            if focus.allowed is not None:
                allowed = focus.allowed if allowed is None else allowed & focus.allowed
            if narrowed is not None:
                narrowing = narrowed if narrowing is None else narrowing.both(narrowed)
        return Focus(allowed, denied), narrowing

    def leave(self, actor: Actor) -> None:
        """The actor is gone; what it was owed goes to nobody."""
        actor.gone = True
        if actor.parent is not None:
            actor.parent.spent += actor.spent
        actor.owed = []
        actor.turns = []
        actor.waits_for = None
        actor.parked = None

    def stop_turn(self, actor: Actor) -> None:
        """End the present turn; a child that it waited for ends with it."""
        awaited = actor.waits_for
        for child in actor.children:
            if awaited is not None and child.turns and child.turns[0] is awaited:
                self._end_below(child)
        self.end(actor, cancelled=True)

    def stop_tree(self, actor: Actor) -> None:
        """End the actor and all below it."""
        parent = actor.parent
        awaited = None if parent is None else parent.waits_for
        busy = bool(actor.turns)
        if awaited is not None and any(turn is awaited for turn in actor.turns) and parent is not None:
            parent.waits_for = None
            parent.steered = False
            parent.asked_at = self.moves
        self._end_below(actor)
        if parent is not None and busy and not parent.turns:
            self.settle(parent)

    def stop_all(self) -> None:
        """End the root's turns and everyone below it."""
        for child in self.root.children:
            if not child.gone:
                self._end_below(child)
        for _ in tuple(self.root.turns):
            self.end(self.root, cancelled=True)

    def _end_below(self, actor: Actor) -> None:
        for child in actor.children:
            if not child.gone:
                self._end_below(child)
        for loan in actor.loans:
            actor.lost |= loan.held.authorities
        actor.loans = []
        self.leave(actor)

    def resume(self, principal: Holding) -> None:
        """Everyone goes on with what was recorded, as far as the principal still holds it."""
        self.principal = written_out(principal)
        for actor in self.alive():
            actor.base = actor.recorded.both(capped(actor.node.role, self.principal))
            if actor.open:
                actor.asked_at = self.moves
        for actor in self.alive():
            if actor.parked is not None:
                self.retry(actor)
