"""Policy files become `domain.policy.Policy`: strictly, every fault of a file at once."""
