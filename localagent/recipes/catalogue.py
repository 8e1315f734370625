"""All recipes: an instruction that was read becomes a change of a tree, or a question."""

from localagent.recipes.add_parameter import add_parameter
from localagent.recipes.instruction import Recipe, Rename
from localagent.recipes.recipe import Question, RecipeChange, RecipeQuestionError, RecipeSources
from localagent.recipes.rename import rename
from localagent.recipes.rename_module import is_module, rename_module


def carry_out(sources: RecipeSources, asked: Recipe) -> RecipeChange | Question:
    """What a recipe makes of the files; nothing is written."""
    try:
        if not isinstance(asked, Rename):
            return add_parameter(sources, asked)
        return rename_module(sources, asked) if is_module(sources, asked) else rename(sources, asked)
    except RecipeQuestionError as question:
        return question.question
