from datetime import date

import pytest

from ledger import Entry, JournalSyntaxError, Money, parse_journal


def test_entry_with_note():
    assert list(parse_journal("2024-03-09  Rent  -820.00  for March\n")) == [
        Entry(date(2024, 3, 9), "rent", Money(-82000), "for March")
    ]


def test_remarks_and_blank_lines():
    assert len(parse_journal("# nothing\n\n   \n")) == 0


def test_all_faults_together():
    with pytest.raises(JournalSyntaxError) as caught:
        parse_journal("2024-03-09 rent\n2024-03-10 rent -8.00\n2024-02-30 rent -8.00\n2024-03-11 rent eight\n")
    assert [fault.split(":")[0] for fault in caught.value.faults] == ["line 1", "line 3", "line 4"]
