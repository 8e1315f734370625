"""Static decisions on a candidate before it may run. A gate that cannot answer denies. Nothing here is executed."""
