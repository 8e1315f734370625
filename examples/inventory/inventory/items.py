"""What the warehouse sells."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """An article. When less than `minimum` is available, it is bought up to `target`, in whole packs."""

    number: str
    name: str
    minimum: int
    target: int
    pack: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.minimum <= self.target:
            raise ValueError(f"{self.number}: minimum {self.minimum} and target {self.target} do not fit")
        if self.pack < 1:
            raise ValueError(f"{self.number}: a pack holds at least one piece")
