"""What is required of this project: an id, one sentence, where it comes from, and the step that brings it.

A test says which line it shows: ``@pytest.mark.requirement("I7")``. test_requirements.py compares both ways: a line of
a step that is reached and has no test fails, and so does a test that names no line.
"""

from __future__ import annotations

from typing import NamedTuple

CURRENT_STEP = 3

# Lines of later steps that have no test yet. Compared for equality: whoever tests one takes it out.
UNTESTED = frozenset({"I12"})


class Requirement(NamedTuple):
    """One line: *sentence* must hold from *step* on; *source* tells who asks for it."""

    id: str
    sentence: str
    source: str
    step: int = 1


INVARIANT = "invariant"
REPORT = "field report"

REQUIREMENTS = (
    Requirement("I1", "Definitions are deeply frozen: one per fingerprint, one actor per incarnation.", INVARIANT),
    Requirement("I2", "One name is one tool with one owner, and a clash names both owners.", INVARIANT),
    Requirement(
        "I3", "What is offered is in the catalog; catalog, registry and what can be permitted agree.", INVARIANT
    ),
    Requirement("I4", "Which tools an actor may use is computed for each call and stored nowhere.", INVARIANT),
    Requirement(
        "I5", "An actor's outcomes do not change when every other actor's focus is removed.", INVARIANT, step=2
    ),
    Requirement("I6", "Authority only shrinks downwards, focus stays where it was given, no turn widens.", INVARIANT),
    Requirement("I7", "A denial comes before any effect, has a type, and names what would change it.", INVARIANT),
    Requirement("I8", "An approval runs exactly the call that was shown, and runs it once.", INVARIANT, step=2),
    Requirement("I9", "No effect happens a second time unless someone says so.", INVARIANT),
    Requirement("I10", "Each turn of a child has one outcome, discharged once, across restarts too.", INVARIANT),
    Requirement("I11", "After close nothing is left running or open, or it is named as abandoned.", INVARIANT),
    Requirement(
        "I12", "A secret appears in its store and in the tool it is bound to, nowhere else.", INVARIANT, step=5
    ),
    Requirement(
        "I13", "Events carry the definition's fingerprint and the view that the model was really sent.", INVARIANT
    ),
    Requirement("I14", "Each accepted turn ends with one terminal event, never none, never two.", INVARIANT),
    Requirement("I15", "The history pairs every call with one result, in a shape every provider takes.", INVARIANT),
    Requirement(
        "B02", "A narrow definition or policy does not shrink a child; the grants of a turn do.", REPORT, step=2
    ),
    Requirement("B03", "A tool that was never offered does not run when the model names it anyway.", REPORT),
    Requirement(
        "B05",
        "What is granted for a turn is over with it, for queued calls and background children too.",
        REPORT,
        step=2,
    ),
    Requirement(
        "B11",
        "Tools of one name on several servers have names of their own, or the clash names every owner at once.",
        REPORT,
        step=3,
    ),
    Requirement("B13", "Names that look alike stay distinct addresses, or each colliding pair is refused.", REPORT),
    Requirement(
        "B15",
        "A tool's name is the same at every start, whatever came up first, and however long it is.",
        REPORT,
        step=3,
    ),
    Requirement(
        "B16", "A schema reaches the model with all it refers to, and discovery shows it unchanged.", REPORT, step=3
    ),
    Requirement("B18", "A recursive, deep, huge or remote schema neither overflows, stalls nor fetches.", REPORT),
    Requirement("B20", "Broken argument JSON is answered as an error and never runs as empty arguments.", REPORT),
    Requirement("B22", "A call cut off by the output limit does not run with the part that arrived.", REPORT),
    Requirement("B24", "Calls with equal, empty or absent ids all run, each with a result of its own.", REPORT),
    Requirement("B26", "After a cancel every open call is answered, so the conversation can go on.", REPORT),
    Requirement("B30", "One failing call of a batch takes nothing from the others and leaves none running.", REPORT),
    Requirement(
        "B32",
        "A server that dies in a call is answered at once with an unknown outcome, and is back for the next.",
        REPORT,
        step=3,
    ),
    Requirement("B34", "What a server prints that is no message costs nothing but a bounded note.", REPORT, step=3),
    Requirement(
        "B36",
        "Tools of every page of a listing are there, and a listing without end is stopped and told.",
        REPORT,
        step=3,
    ),
    Requirement(
        "B38",
        "A tool that its server changes is never used as if it were the old one: a person sees the difference first.",
        REPORT,
        step=3,
    ),
    Requirement(
        "B40",
        "One task owns a connection from open to close, so sessions close in any order from any task.",
        REPORT,
        step=3,
    ),
    Requirement(
        "B42",
        "No process that a session started outlives it, or its next start after a kill.",
        REPORT,
        step=3,
    ),
    Requirement("B44", "After a stop no model request follows, whatever a tool makes of its cancellation.", REPORT),
    Requirement("B46", "Time limits and order do not depend on the wall clock.", REPORT),
    Requirement("B48", "A finished child's notice reaches its parent once, though busy, closed or killed.", REPORT),
    Requirement("B50", "A notice goes to the owner of the work or to the dead letters, to no one else.", REPORT),
    Requirement("B54", "Parents that wait for children finish under any limit on model requests.", REPORT),
    Requirement("B56", "A full mailbox refuses its sender by type and still takes a stop.", REPORT),
    Requirement("B58", "Repeating one call with one result is pointed out and then ends the turn.", REPORT),
    Requirement(
        "B63",
        "An approval serves the call that was shown, once, and no other arguments, restart or not.",
        REPORT,
        step=2,
    ),
    Requirement(
        "B65",
        "A child's question shows its path, its answer resumes that child, and nobody is asked in vain.",
        REPORT,
        step=2,
    ),
    Requirement("B67", "A torn end of the log costs that record at most; damage within is reported.", REPORT),
    Requirement("B69", "Concurrent requests to one session keep an order and lose nothing.", REPORT),
    Requirement("B71", "After a crash inside a batch its finished calls are kept and not run again.", REPORT),
    Requirement("B76", "A path outside the root is refused however it is spelled.", REPORT),
    Requirement("B78", "Text is cut and cleaned so that no half character or lone surrogate travels on.", REPORT),
    Requirement(
        "B80",
        "A provider's passing fault is asked again, visibly and within bounds; a lasting one ends with a remedy.",
        REPORT,
        step=3,
    ),
    Requirement("B82", "Counts of a streamed reply are cumulative: the last one holds, none is added.", REPORT, step=3),
    Requirement(
        "B84",
        "An agent file with a fault makes no agent, and every fault is told with line, column and reason.",
        REPORT,
        step=3,
    ),
    Requirement(
        "B93",
        "A tool whose every call would be refused is not offered, or is reported with what it lacks.",
        REPORT,
        step=2,
    ),
)
