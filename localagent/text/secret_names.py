"""Parts of the names of secrets, for regular expressions that ignore case; each user adds what it alone looks for."""

SENSITIVE_NAME = (
    "passw(?:or)?d|pass_?phrase|secret|credential|api_?key|private_?key|signing_?key|encryption_?key"
    "|(?:access|auth|api|bearer)_?token"
)
