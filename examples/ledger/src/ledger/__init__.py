"""Household bookkeeping from a plain text file."""

from ledger.journal import Entry, Journal
from ledger.money import Money
from ledger.parser import JournalSyntaxError, parse_journal
from ledger.statement import Statement, statement

__all__ = ["Entry", "Journal", "JournalSyntaxError", "Money", "Statement", "parse_journal", "statement"]
