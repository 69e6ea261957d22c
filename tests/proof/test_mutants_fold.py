"""What each record of a journal does to the folded state, said once for each, without any live session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from actors.grants import Access, Grants
from actors.loop import Phase
from actors.messages import (
    CallFinished,
    ModelFailed,
    ModelReplied,
    ModelReply,
    Outcome,
    ReplyStop,
    Said,
    Steered,
    StopReason,
    ToolCall,
    ToolResult,
    TurnOpened,
    TurnOrigin,
    Usage,
)
from orchestrator.focus import OPEN, Policy
from orchestrator.journal.consent import ApprovalAnswered, ApprovalAsked, ApprovalLapsed, RuleMade, StateMoved
from orchestrator.journal.fold import apply, fold
from orchestrator.journal.records import (
    ActorExited,
    ActorRestarted,
    ActorSpawned,
    CallIntended,
    ChildStatus,
    Drop,
    EffectSettled,
    Entry,
    LoanEnded,
    LoanMade,
    OfferMade,
    OutcomeDropped,
    OutcomeRecorded,
    SessionOpened,
    SessionParked,
    SessionResumed,
    TurnAccepted,
    TurnEnded,
    TurnRejected,
)
from orchestrator.journal.source import Pin, SourceEnded, SourceRunning, SourceStarted, ToolsPinned
from orchestrator.journal.state import SessionState
from orchestrator.journal.work import (
    FindingRecorded,
    FixesRecorded,
    FixRecorded,
    OutputStored,
    ReviewRecorded,
    Stage,
    StageStarted,
    StepFinished,
    StepStarted,
    Verdict,
)

if TYPE_CHECKING:
    from orchestrator.journal.records import Record

BOSS, KID = "boss", "boss/kid-0002"
NARROW = Grants(("workspace.read",), Access.READ)
DENY = Policy.deny("put")
TASK = TurnAccepted("t2", "work", TurnOrigin.DELEGATE)
KNOWN: list[tuple[str, Record]] = [
    (BOSS, ActorSpawned("boss", "f1", "", NARROW, 1)),
    (BOSS, TurnAccepted("t1", "go", TurnOrigin.RUN, DENY, NARROW)),
    (KID, ActorSpawned("kid", "f2", BOSS, NARROW, 2, cause="t1", call="c1")),
    (KID, TASK),
]
ENDED = TurnEnded("t2", StopReason.COMPLETED, "done")
MEANT = CallIntended("t2", "k1", "put", "1", Access.WRITE, "put:{}", "{}")
ASKED = ApprovalAsked("a1", "t2", "k1", "put", "1", "{}", "d", "", "r", 99)
YES = ApprovalAnswered("a1", approved=True, by="ann")
LOAN = LoanMade("l1", BOSS, NARROW, "t2")


def folded(*records: tuple[str, Record]) -> SessionState:
    """The state after the two actors are known and *records* came."""
    return fold(Entry(number, 0, actor, record) for number, (actor, record) in enumerate([*KNOWN, *records], 1))


def finished(outcome: Outcome = Outcome.OK, *discharged: str, call: str = "k1", turn: str = "t2") -> CallFinished:
    """A call has its result."""
    return CallFinished(turn, ToolResult(call, "put", "text", outcome), discharged)


def test_an_empty_journal_is_an_empty_state() -> None:
    state = fold(())
    assert (state.opened, state.parked, state.seq, state.turns, state.spawned) == (None, False, 0, 0, 0)
    assert (state.workflow, state.moves, state.actors, state.live_loans(BOSS), state.lost_loans(BOSS)) == (
        "",
        0,
        {},
        (),
        (),
    )
    assert (state.owed(BOSS), state.asks(BOSS)) == ((), False)


def test_an_actor_is_known_by_its_parent_its_call_and_the_terms_of_the_turn_that_started_it() -> None:
    state = folded()
    boss, kid = state.actors[BOSS], state.actors[KID]
    assert (state.seq, state.turns, state.spawned) == (4, 2, 2)
    assert (state.children, state.by_call) == ({BOSS: [KID]}, {f"{BOSS}\0c1": KID})
    assert (kid.path, kid.incarnation, kid.exited, kid.task, kid.spent) == (KID, 1, "", "t2", Usage())
    assert (kid.terms, kid.last_terms, kid.offered, kid.ended) == ((DENY, NARROW), (OPEN, None), None, None)
    assert (kid.last_fact, kid.crash_mark, kid.stuck, kid.loop.phase) == (0, 0, False, Phase.IDLE)
    assert (boss.terms, boss.last_terms, boss.task) == (None, (DENY, NARROW), "")
    assert kid.accepted("t2") == TASK
    assert kid.accepted("t1") is None


def test_the_count_of_actors_is_the_highest_number_and_a_start_without_a_call_is_found_by_none() -> None:
    state = folded(
        (f"{BOSS}/x-0009", ActorSpawned("x", "f", BOSS, NARROW, 9)), ("o", ActorSpawned("o", "f", "", NARROW, 3))
    )
    assert state.spawned == 9
    assert state.by_call == {f"{BOSS}\0c1": KID}
    assert state.children == {BOSS: [KID, f"{BOSS}/x-0009"]}
    assert state.actors[f"{BOSS}/x-0009"].terms is None


def test_a_restart_an_exit_an_offer_and_a_rejected_turn_are_kept() -> None:
    offer = OfferMade("t2", "f2", ("look",))
    opened = SessionOpened("s", "boss", "f1", "p", "t")
    records: list[tuple[str, Record]] = [
        ("", opened),
        (KID, ActorRestarted(3, "crash")),
        (KID, ActorExited("gone")),
        (KID, offer),
        (KID, TurnRejected("t3", "no")),
    ]
    state = folded(*records)
    kid = state.actors[KID]
    assert (kid.incarnation, kid.exited, kid.offered, state.turns, state.opened) == (3, "gone", offer, 3, opened)


def test_the_loop_of_each_actor_is_advanced_by_its_facts_and_only_when_asked_to() -> None:
    reply = ModelReply("done", usage=Usage(requests=1, output_tokens=7))
    records: list[tuple[str, Record]] = [
        (KID, TurnOpened("t2", "work")),
        (KID, Steered("t2", "more")),
        (KID, ModelFailed("t2", "no line")),
    ]
    state = folded(*records[:2])
    assert (state.actors[KID].loop.phase, state.actors[KID].last_fact, state.actors[BOSS].last_fact) == (
        Phase.MODEL,
        6,
        0,
    )
    assert state.actors[KID].loop.steered == ("more",)
    state = folded(*records)
    ended = state.actors[KID].ended
    assert ended is not None
    assert (ended.reason, state.actors[KID].loop.history) == (StopReason.FAILED, (Said("work"), Said("more")))
    state = folded(*records, (KID, TurnEnded("t2", StopReason.FAILED, "")))
    assert state.actors[KID].ended is None
    live = SessionState()
    for number, (actor, record) in enumerate([*KNOWN, records[0], (KID, ModelReplied("t2", reply))], 1):
        apply(live, Entry(number, 0, actor, record), loops=False)
    assert (live.actors[KID].loop.phase, live.actors[KID].last_fact) == (Phase.IDLE, 0)
    assert live.actors[KID].spent == Usage(requests=1, output_tokens=7)
    assert fold([Entry(1, 0, "nobody", Steered("t1", "x"))]).actors == {}
    live = SessionState()
    apply(live, Entry(1, 0, "nobody", StateMoved("x", "y")), loops=True)
    assert live.workflow == "x"


def test_a_record_without_a_place_in_the_state_only_counts() -> None:
    class Foreign:
        """Nothing that the fold knows."""

    state = folded()
    apply(state, Entry(9, 0, KID, Foreign()))  # type: ignore[arg-type]  # that is the test
    assert (state.seq, state.actors[KID].last_fact, state.turns) == (9, 0, 2)


def test_the_end_of_a_turn_takes_it_from_the_waiting_ones_with_all_that_was_of_it() -> None:
    other = TurnAccepted("t4", "next", TurnOrigin.SEND)
    state = folded((KID, other), (KID, OfferMade("t2", "f2", ())), (KID, MEANT), (KID, ENDED))
    kid = state.actors[KID]
    assert (kid.waiting, kid.offered, kid.ended, kid.stuck) == ([other], None, None, False)
    assert (state.in_doubt, state.unresolved, state.step_ends) == ({}, {"put:{}": MEANT}, {})


def test_only_the_intents_of_the_turn_and_the_actor_that_ended_become_unresolved() -> None:
    later = CallIntended("t9", "k2", "put", "1", Access.WRITE, "put:2", "2")
    others = CallIntended("t2", "b1", "put", "1", Access.WRITE, "put:3", "3")
    state = folded((KID, MEANT), (KID, later), (BOSS, others), (KID, ENDED))
    assert state.in_doubt == {(KID, "k2"): later, (BOSS, "b1"): others}
    assert state.unresolved == {"put:{}": MEANT}


@pytest.mark.parametrize("origin", list(TurnOrigin))
def test_the_end_of_a_step_is_kept_until_the_step_is_judged(origin: TurnOrigin) -> None:
    started = ("", StepStarted("plan", KID, "t5"))
    end = TurnEnded("t5", StopReason.COMPLETED, "out")
    records: list[tuple[str, Record]] = [(KID, TurnAccepted("t5", "x", origin)), started, (KID, end)]
    state = folded(*records)
    assert state.step_ends == ({"t5": end} if origin is TurnOrigin.STEP else {})
    assert state.steps == {"plan": started[1]}
    over = StepFinished("plan", ok=True, output="out")
    state = folded(*records, ("", over), ("", StepFinished("unknown", ok=True, output="")))
    assert (state.step_ends, state.finished_steps["plan"]) == ({}, over)
    assert folded((KID, TurnEnded("unknown", StopReason.FAILED, ""))).step_ends == {}


def test_the_stages_of_a_step_and_what_was_said_in_them_are_kept_in_order_and_their_ends_until_it_is_over() -> None:
    records: list[tuple[str, Record]] = [("", StepStarted("plan", KID, "t5"))]
    records += [(KID, TurnAccepted(turn, "x", TurnOrigin.STEP)) for turn in ("t5", "t6", "t7", "t8")]
    void = StageStarted("plan", Stage.REVIEW, KID, "", 1, 3)
    again = StageStarted("plan", Stage.WORK, KID, "t6", again=True)
    review, fix = (StageStarted("plan", Stage(s), KID, t, 1, 3) for s, t in (("review", "t7"), ("fix", "t8")))
    records += [("", stage) for stage in (again, void, review, fix)]
    ends = {turn: TurnEnded(turn, StopReason.COMPLETED, turn) for turn in ("t5", "t6", "t7", "t8")}
    records += [(KID, end) for end in ends.values()]
    said = [ReviewRecorded("plan", 1, 3, KID, Verdict.CHANGES_WANTED), FixesRecorded("plan", 1, KID, ())]
    records += [(KID, record) for record in said]
    state = folded(*records)
    assert state.stages == {
        "plan": {(Stage.WORK, 0, True): again, (Stage.REVIEW, 1, False): review, (Stage.FIX, 1, False): fix}
    }
    assert state.rounds == {"plan": said}
    assert state.step_ends == ends
    state = folded(*records, ("", StepFinished("other", ok=True, output="")))
    assert state.step_ends == ends
    state = folded(*records, ("", StepFinished("plan", ok=True, output="")))
    assert (state.step_ends, state.rounds) == ({}, {"plan": said})


@pytest.mark.parametrize(
    "outcome, unresolved, spent",
    [
        (Outcome.OK, False, 1),
        (Outcome.ERROR, False, 1),
        (Outcome.CANCELLED, False, 1),
        (Outcome.DENIED, False, 0),
        (Outcome.UNKNOWN, True, 1),
    ],
)
def test_what_became_of_a_call_settles_its_intent_and_is_paid_for(
    outcome: Outcome,
    unresolved: bool,  # noqa: FBT001  # a parameter of the table
    spent: int,
) -> None:
    assert folded((KID, MEANT)).in_doubt == {(KID, "k1"): MEANT}
    state = folded((KID, MEANT), (KID, finished(outcome)))
    assert (state.in_doubt, bool(state.unresolved), state.actors[KID].spent) == ({}, unresolved, Usage(calls=spent))
    assert folded((KID, finished(outcome))).unresolved == {}
    assert folded((KID, MEANT), (KID, finished(outcome)), ("", EffectSettled("put:{}", True, "x"))).unresolved == {}  # noqa: FBT003  # a record's own order
    assert folded(("", EffectSettled("other", True, "x"))).unresolved == {}  # noqa: FBT003  # a record's own order


def owed(*records: tuple[str, Record]) -> tuple[tuple[str, ...], str]:
    """The child turns owed to the boss, and how the first one was discharged."""
    outcome = OutcomeRecorded(KID, "t2", ChildStatus.COMPLETED, "done", wakes=False)
    state = folded((BOSS, outcome), *records)
    first = state.outcomes["t2"]
    assert (first.parent, first.child, first.status, first.text, first.wakes) == (
        BOSS,
        KID,
        ChildStatus.COMPLETED,
        "done",
        False,
    )
    return tuple(item.turn for item in state.owed(BOSS)), first.discharged


def test_an_outcome_is_owed_until_exactly_one_record_discharges_it() -> None:
    second: tuple[str, Record] = (BOSS, OutcomeRecorded(KID, "t8", ChildStatus.FAILED, "bad"))
    assert owed() == (("t2",), "")
    assert owed(second) == (("t2", "t8"), "")
    assert owed(second, (BOSS, finished(Outcome.OK, "t2", call="c", turn="t1"))) == (("t8",), "result")
    assert owed((BOSS, TurnAccepted("t9", "x", TurnOrigin.NOTICE, notices=("t2",)))) == ((), "notice")
    assert owed((BOSS, Steered("t1", "x", ("t2",)))) == ((), "notice")
    for why in Drop:
        assert owed((BOSS, OutcomeDropped("t2", why))) == ((), why.value)
    twice = ((BOSS, OutcomeDropped("t2", Drop.DEAD_LETTER)), (BOSS, Steered("t1", "x", ("t2", "unknown"))))
    assert owed(*twice) == ((), "dead_letter")


def test_a_loan_lives_until_it_ends_or_its_lender_is_gone_and_is_lost_then() -> None:
    lent = (KID, LOAN)
    assert (folded(lent).live_loans(KID), folded(lent).lost_loans(KID)) == ((LOAN,), ())
    assert (folded(lent).live_loans(BOSS), folded(lent).lost_loans(BOSS)) == ((), ())
    over = folded(lent, (KID, LoanEnded("l1", "over")), (KID, LoanEnded("l1", "over again")))
    assert (over.live_loans(KID), over.lost_loans(KID)) == ((), (LOAN,))
    assert (over.loans, over.borrowed, over.ended_loans) == ({}, {KID: []}, {KID: [LOAN]})
    gone = folded(lent, (BOSS, ActorExited("gone")))
    assert (gone.live_loans(KID), gone.lost_loans(KID)) == ((), (LOAN,))
    stranger = LoanMade("l2", "nobody", NARROW, "t2")
    both = folded(lent, (KID, stranger))
    assert (both.live_loans(KID), both.lost_loans(KID)) == ((LOAN,), (stranger,))
    both.borrowed[KID].append("unknown")
    assert (both.live_loans(KID), both.lost_loans(KID)) == ((LOAN,), (stranger,))


def test_findings_fixes_and_outputs_are_kept_with_their_author() -> None:
    finding, fix = FindingRecorded(1, "a", "b"), FixRecorded(1, "a.py", "diff")
    state = folded((KID, finding), (BOSS, fix), (KID, OutputStored("o1", "long")))
    assert (state.findings, state.fixes, state.outputs) == ([(KID, finding)], [(BOSS, fix)], {"o1": (KID, "long")})


def test_a_question_has_one_answer_the_first_and_is_used_by_the_call_it_is_bound_to() -> None:
    asked = (KID, ASKED)
    approval = folded(asked).approvals["a1"]
    assert (approval.path, approval.asked, approval.answered, approval.lapsed, approval.used) == (
        KID,
        ASKED,
        None,
        False,
        False,
    )
    assert folded(asked).asked_for == {(KID, "k1"): "a1"}
    no = ApprovalAnswered("a1", approved=False, by="bob")
    assert folded(asked, (KID, YES), (KID, no)).approvals["a1"].answered == YES
    assert folded(asked, (KID, ApprovalLapsed("a1"))).approvals["a1"].lapsed is True
    assert folded(asked, (KID, YES), (KID, ApprovalLapsed("a1"))).approvals["a1"].lapsed is False
    unknown = ((KID, ApprovalAnswered("a7", approved=True, by="x")), (KID, ApprovalLapsed("a7")))
    assert folded(*unknown).approvals == {}
    for use in (MEANT, finished()):
        assert folded(asked, (KID, use)).approvals["a1"].used is True
        assert folded(asked, (BOSS, use)).approvals["a1"].used is False


def test_an_actor_asks_while_its_own_question_or_one_below_it_is_open() -> None:
    asked = (KID, ASKED)
    assert [folded(asked).asks(path) for path in (KID, BOSS, "bos", f"{KID}/x")] == [True, True, False, False]
    assert [folded(asked, (KID, end)).asks(BOSS) for end in (YES, finished())] == [False, False]


def test_rules_and_moves_of_the_workflow_are_kept_in_order() -> None:
    rule = RuleMade("r1", "put", "1", "f2", (), "ann")
    state = folded((KID, rule), (KID, StateMoved("draft", "host")), (KID, StateMoved("final", "put")))
    assert (state.rules, state.workflow, state.moves) == ([rule], "final", 2)


def crashes(*between: tuple[str, Record], parked: bool = False, times: int = 2) -> SessionState:
    """The child's turn is open; the session is resumed as often as said, the last times after *between*."""
    ends: list[tuple[str, Record]] = [("", SessionParked())] if parked else []
    records: list[tuple[str, Record]] = [(KID, TurnOpened("t2", "work"))]
    for number in range(times):
        records += [*(between if number else ()), *ends, ("", SessionResumed(2 + number))]
    return folded(*records)


def test_a_turn_is_stuck_when_the_process_crashed_twice_at_the_same_place() -> None:
    stuck = crashes()
    assert (stuck.actors[KID].stuck, stuck.actors[KID].crash_mark, stuck.parked) == (True, 5, False)
    once = crashes(times=1)
    assert (once.actors[KID].stuck, once.actors[KID].crash_mark) == (False, 5)
    assert (once.actors[BOSS].stuck, once.actors[BOSS].crash_mark) == (False, 0)
    moved = crashes((KID, Steered("t2", "more")))
    assert (moved.actors[KID].stuck, moved.actors[KID].crash_mark) == (False, 7)
    calm = crashes(parked=True)
    assert (calm.actors[KID].stuck, calm.actors[KID].crash_mark, calm.parked) == (False, 0, False)
    assert folded(("", SessionParked())).parked is True
    gone = crashes((KID, ActorExited("gone")))
    assert (gone.actors[KID].stuck, gone.actors[KID].crash_mark) == (False, 5)
    asking = crashes((KID, ASKED))
    assert (asking.actors[KID].stuck, asking.actors[KID].crash_mark) == (False, 0)
    assert crashes((KID, ENDED)).actors[KID].stuck is True, "the loop was not told; only the end of the turn was"
    assert (
        folded((KID, TurnOpened("t2", "x")), *[("", SessionResumed(n)) for n in (2, 3)], (KID, ENDED)).actors[KID].stuck
        is False
    )


def test_a_parent_is_not_stuck_while_something_below_it_goes_on() -> None:
    call = ModelReplied("t1", ModelReply("", (ToolCall("c1", "delegate"),), ReplyStop.TOOL_CALLS))
    opened: list[tuple[str, Record]] = [(BOSS, TurnOpened("t1", "go")), (BOSS, call), (KID, TurnOpened("t2", "work"))]
    resumed: tuple[str, Record] = ("", SessionResumed(2))
    state = folded(*opened, resumed)
    assert (state.actors[BOSS].crash_mark, state.actors[KID].crash_mark) == (7, 7)
    state = folded(*opened, resumed, (KID, Steered("t2", "more")), resumed)
    assert (state.actors[BOSS].stuck, state.actors[BOSS].crash_mark) == (False, 9)
    near = folded(*opened, ("bossy", ActorSpawned("x", "f", "", NARROW, 3)), ("bossy", TurnOpened("t9", "x")), resumed)
    assert (near.actors[BOSS].crash_mark, near.actors["bossy"].crash_mark) == (7, 9)


def test_the_processes_of_sources_are_known_until_they_are_gone_and_pins_are_those_of_the_first_listing() -> None:
    started: tuple[str, Record] = ("", SourceStarted("db", "m1"))
    running = SourceRunning("m1", 77, "12")
    assert folded(started).processes == {"m1": None}
    assert folded(started, ("", running)).processes == {"m1": running}
    assert folded(("", running), started).processes == {"m1": running}
    assert folded(started, ("", running), ("", SourceEnded("m1", gone=False))).processes == {"m1": running}
    assert folded(started, ("", SourceEnded("m1", gone=True))).processes == {}
    assert folded(("", SourceEnded("m2", gone=True)), started).processes == {"m1": None}
    first, later = (Pin("look", text, "{}") for text in ("Looks.", "Looks otherwise."))
    pinned: tuple[str, Record] = ("", ToolsPinned("k", "db", (first,)))
    state = folded(pinned, ("", ToolsPinned("k", "db", (later,))), ("", ToolsPinned("other", "db", (later,))))
    assert state.pins == {"k": (first,), "other": (later,)}
    assert first.version == Pin("look", "Looks.", "{}").version
    others = [later, Pin("x", "Looks.", "{}"), Pin("look", "Looks.", "[]"), Pin("look", "Looks.", "{}", "{}")]
    others.append(Pin("look", "Looks.", "{}", "", (("readOnlyHint", True),)))
    assert len({first.version, *(pin.version for pin in others)}) == 6
    assert len(first.version) == 12
