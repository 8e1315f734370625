"""What the sources of one project define: modules, classes, functions, attributes and variables, by spelling."""

# ruff: noqa: N802 - libcst calls visitors so
from dataclasses import dataclass, field

import libcst as cst

KINDS = ("module", "class", "attribute", "function", "value")


@dataclass(slots=True)
class Names:
    """What the sources of a project define, by spelling, in the order met. `foreign` are names that imports bind."""

    kinds: dict[str, str] = field(default_factory=dict)
    attributes: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    imported: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    read: dict[str, None] = field(default_factory=dict)

    def define(self, name: str, kind: str) -> None:
        """A spelling is of the first of KINDS that it is met as."""
        known = self.kinds.setdefault(name, kind)
        if KINDS.index(kind) < KINDS.index(known):
            self.kinds[name] = kind


def words_of(node: cst.CSTNode | None) -> list[str]:
    """The names of a dotted name."""
    if isinstance(node, cst.Attribute):
        return [*words_of(node.value), node.attr.value]
    return [node.value] if isinstance(node, cst.Name) else []


class NameReader(cst.CSTVisitor):
    """Collects what one source defines."""

    def __init__(self, names: Names) -> None:
        super().__init__()
        self._names = names
        self._inside: list[str] = []  # "class" or "function", outermost first
        self._elsewhere: set[cst.CSTNode] = set()  # names that are no variables

    def visit_Import(self, node: cst.Import) -> None:
        for alias in node.names:
            words = words_of(alias.name)
            self._alias(words, words[0], alias, own=words[0] in self._names.modules)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        module = words_of(node.module)
        own = bool(node.relative) or module[0] in self._names.modules
        for alias in () if isinstance(node.names, cst.ImportStar) else node.names:
            name = words_of(alias.name)[0]
            self._alias([*module, name], name, alias, own=own)
        return False

    def _alias(self, words: list[str], bound: str, alias: cst.ImportAlias, *, own: bool) -> None:
        if alias.asname is not None:
            bound = words_of(alias.asname.name)[0]
        if own and words[-1] in self._names.modules:
            self._names.modules.add(bound)
        elif own:
            self._names.read.setdefault(bound)
        else:
            self._names.foreign.add(bound)
            self._names.imported.update(".".join(words[:k]) for k in range(1, len(words) + 1))

    def visit_ImportAlias(self, node: cst.ImportAlias) -> bool:
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._define(node.name, "class")
        self._inside.append("class")

    def leave_ClassDef(self, original_node: cst.ClassDef) -> None:
        self._inside.pop()

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._define(node.name, "function")
        self._inside.append("function")

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._inside.pop()

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self._bind(node.target)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._bind(node.target)

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self._elsewhere.add(node.attr)

    def visit_Arg(self, node: cst.Arg) -> None:
        self._elsewhere.update([node.keyword] if node.keyword else [])

    def visit_MatchKeywordElement(self, node: cst.MatchKeywordElement) -> None:
        self._elsewhere.add(node.key)

    def visit_Name(self, node: cst.Name) -> None:
        if node not in self._elsewhere:
            self._names.read.setdefault(node.value)

    def _define(self, name: cst.Name, kind: str) -> None:
        if self._inside[-1:] == ["class"]:
            self._names.attributes.add(name.value)
            kind = kind if kind == "class" else "attribute"
        if kind != "value":
            self._names.define(name.value, kind)

    def _bind(self, target: cst.CSTNode) -> None:
        if isinstance(target, cst.Name):
            self._define(target, "value")
        elif isinstance(target, cst.Attribute):
            self._names.attributes.add(target.attr.value)
            self._names.define(target.attr.value, "attribute")
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._bind(element.value)
