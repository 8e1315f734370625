"""The audit journal of one state directory: written, checked, its heads signed, told to an auditor."""
