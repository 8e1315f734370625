"""From a failing test or script to the smallest program that still fails in the same way, and why a test is flaky."""
