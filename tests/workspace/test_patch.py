"""A diff applies exactly or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.workspace.patch import MAX_OFFSET, PatchError, apply, apply_patch, make, parse, reverse

LINE = st.text(alphabet="ab \r\t\x0c\x85\u2028-+@\\", max_size=4)
TEXT = st.lists(LINE, max_size=30).map("\n".join)
HEAD = "--- a/f\n+++ b/f\n"


@given(TEXT, TEXT)
def test_what_is_made_applies_and_can_be_undone(original: str, changed: str) -> None:
    diff = make(original, changed, "f")
    assert apply(original, diff) == changed
    if diff:
        assert apply_patch(changed, reverse(parse(diff))) == original


@given(TEXT, st.data())
def test_small_changes_of_a_long_text_apply_and_can_be_undone(original: str, data: st.DataObject) -> None:
    lines = original.split("\n") * 3
    at = data.draw(st.integers(0, len(lines)))
    changed = "\n".join([*lines[:at], data.draw(LINE), *lines[at + data.draw(st.integers(0, 2)) :]])
    original = "\n".join(lines)
    diff = make(original, changed, "f")
    assert apply(original, diff) == changed


def test_several_hunks_each_move_with_the_ones_before() -> None:
    original = "".join(f"{number}\n" for number in range(40))
    changed = original.replace("2\n", "2\ntwo\nmore\n", 1).replace("30\n", "").replace("39\n", "last\n")
    diff = make(original, changed, "f")
    assert len(parse(diff).hunks) == 3
    assert apply("new first line\n" + original, diff) == "new first line\n" + changed


def test_a_hunk_elsewhere_applies_when_there_is_one_such_place() -> None:
    assert apply("x\n" * 50 + "a\nb\n", f"{HEAD}@@ -1,2 +1,2 @@\n a\n-b\n+c\n") == "x\n" * 50 + "a\nc\n"


def test_a_hunk_that_fits_several_places_and_not_the_stated_one_is_refused() -> None:
    with pytest.raises(PatchError, match=r"not at line 1 but at several others \(2, 4\)") as refused:
        apply("x\na\nx\na\n", f"{HEAD}@@ -1 +1 @@\n-a\n+b\n")
    assert refused.value.place == 3
    assert refused.value.remedy == "Correct the line number or add context."


def test_the_stated_place_wins_over_others() -> None:
    assert apply("a\na\na\n", f"{HEAD}@@ -2 +2 @@\n-a\n+b\n") == "a\nb\na\n"


def test_a_hunk_too_far_away_is_refused() -> None:
    diff = f"{HEAD}@@ -1 +1 @@\n-a\n+b\n"
    assert apply("x\n" * MAX_OFFSET + "a\n", diff).endswith("x\nb\n")
    with pytest.raises(PatchError, match="not in the file"):
        apply("x\n" * (MAX_OFFSET + 1) + "a\n", diff)


@pytest.mark.parametrize("there", ["a \n", "A\n", "\ta\n", "a\r\nx\n"])
def test_what_is_merely_alike_is_not_taken(there: str) -> None:
    with pytest.raises(PatchError, match="at line 1 it expects 'a\\\\n', the file has") as refused:
        apply(there, f"{HEAD}@@ -1 +1 @@\n-a\n+b\n")
    assert refused.value.remedy == "Read the file again and make the diff from it."


def test_hunks_out_of_order_do_not_overlap() -> None:
    with pytest.raises(PatchError) as refused:
        apply("a\nb\n", f"{HEAD}@@ -2 +2 @@\n-b\n+c\n@@ -1 +1 @@\n-a\n+d\n")
    assert refused.value.place == 6


def test_an_insertion_without_context_goes_where_it_says_and_nowhere_else() -> None:
    assert apply("a\nb\n", f"{HEAD}@@ -1,0 +2 @@\n+x\n") == "a\nx\nb\n"
    with pytest.raises(PatchError, match="line 3 is not in what is left of the file, which has 2 lines"):
        apply("a\nb\n", f"{HEAD}@@ -3,0 +4 @@\n+x\n")


def test_crlf_is_kept_when_the_diff_is_written_without_it() -> None:
    diff = f"{HEAD}@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n"
    assert apply("a\r\nb\r\n", diff) == "a\r\nc\r\nd\r\n"
    assert apply("a\r\nb", diff) == "a\r\nc\r\nd"
    assert apply("a\r\nb\r\n", f"{HEAD}@@ -1,0 +2 @@\n+x\n") == "a\r\nx\r\nb\r\n"


def test_a_file_of_mixed_line_ends_is_matched_as_it_is() -> None:
    with pytest.raises(PatchError):
        apply("a\r\nb\n", f"{HEAD}@@ -1,2 +1,2 @@\n a\n-b\n+c\n")
    assert apply("a\r\nb\n", f"{HEAD}@@ -1,2 +1,2 @@\n a\r\n-b\n+c\n") == "a\r\nc\n"


def test_a_diff_that_travelled_as_crlf_is_read_as_if_it_had_not() -> None:
    diff = f"{HEAD}@@ -1,2 +1,2 @@\n a\n-b\n+c\n".replace("\n", "\r\n")
    assert apply("a\nb\n", diff) == "a\nc\n"
    assert apply("a\r\nb\r\n", diff) == "a\r\nc\r\n"


def test_a_missing_final_newline_is_kept_unless_the_diff_speaks_of_it() -> None:
    diff = f"{HEAD}@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    assert apply("a\nb", diff) == "a\nc"
    assert apply("a\nb", diff.replace("-b\n", "-b\n\\ No newline at end of file\n")) == "a\nc\n"
    assert apply("a\nb\n", f"{diff}\\ No newline at end of file\n") == "a\nc"


def test_a_no_newline_mark_in_the_middle_cannot_join_lines() -> None:
    with pytest.raises(PatchError, match="would not be the last") as refused:
        apply("a\nb\n", f"{HEAD}@@ -1 +1 @@\n-a\n+c\n\\ No newline at end of file\n")
    assert refused.value.place == 3


def test_a_blank_context_line_may_have_lost_its_space() -> None:
    assert apply("a\n\nb\n", f"{HEAD}@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n\n") == "a\n\nc\n"


def test_files_are_created_and_deleted() -> None:
    made = "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n"
    gone = "--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"
    assert apply("", made) == "a\nb\n"
    assert parse(made).creates
    assert apply("a\nb\n", gone) == ""
    assert parse(gone).deletes
    with pytest.raises(PatchError, match="already there"):
        apply("x\n", made)
    with pytest.raises(PatchError, match="leaves lines in it"):
        apply("a\nb\nc\n", gone)


def test_git_headers_times_and_hunk_titles_are_passed_over() -> None:
    diff = (
        "diff --git a/f b/f\nindex 1..2 100644\n--- a/f\t2026-01-01 10:00\n+++ b/f\t2026-01-02\n"
        "@@ -1 +1 @@ def f():\n-a\n+b\n"
    )
    assert apply("a\n", diff) == "b\n"
    assert (parse(diff).old_name, parse(diff).new_name) == ("a/f", "b/f")


def test_a_removed_line_that_looks_like_a_header_is_a_removed_line() -> None:
    original, changed = "-- x\n++ y\n@@ z\n", "++ x\n-- y\n"
    assert apply(original, make(original, changed, "f")) == changed


@pytest.mark.parametrize(
    "diff, place, fault",
    [
        ("some words", 1, "the two header lines are missing"),
        ("--- a/f\n", 2, "the two header lines are missing"),
        ("--- a/f\nx\n", 2, "the two header lines are missing"),
        (HEAD, 2, "there is no hunk"),
        (f"{HEAD}-a\n+b\n", 3, "more lines than the hunk's header counts"),
        (f"{HEAD}@@ ... @@\n-a\n", 3, "this is not a hunk header"),
        (f"{HEAD}@@ -1,2 +1 @@\n-a\n+b\n", 3, "counts 2 old and 1 new lines, and 1 and 1 stand below it"),
        (f"{HEAD}@@ -1 +1,2 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n+d\n", 3, "and 1 and 1 stand below it"),
        (f"{HEAD}@@ -1 +1 @@\n-a\n+b\n+c\n", 6, "more lines than the hunk's header counts"),
        (f"{HEAD}@@ -1,1 +1,3 @@\n-a\n-b\n+c\n", 3, "counts 1 old and 3 new lines, and 2 and 0"),
        (f"{HEAD}@@ -1 +1 @@\n-a\n+b\n--- a/g\n+++ b/g\n", 6, "a second file begins here"),
        (f"{HEAD}@@ -1 +1 @@\n-a\n+b\ndiff --git a/g b/g\n", 6, "a second file begins here"),
        ("diff --git a/f b/g\nrename from f\n", 2, "rename is not a change of text"),
        ("GIT binary patch\n", 1, "is not a change of text"),
    ],
)
def test_a_diff_that_cannot_be_read_is_refused_at_its_line(diff: str, place: int, fault: str) -> None:
    with pytest.raises(PatchError) as refused:
        apply("a\n", diff)
    assert refused.value.place == place
    assert fault in refused.value.fault
    assert refused.value.remedy
    assert str(refused.value).startswith(f"diff line {place}: ")


def test_a_path_that_a_header_cannot_hold_is_refused() -> None:
    with pytest.raises(PatchError, match="does not print"):
        make("a", "b", "one\ntwo")
