"""From a failing test, script or traceback to the smallest program that fails in the same way."""
