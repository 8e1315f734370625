"""All recipes: an instruction that was read becomes a change of a tree, or a question."""

from localagent.recipes.add_parameter import add_parameter
from localagent.recipes.instruction import Recipe, Rename
from localagent.recipes.recipe import Question, RecipeChange, RecipeQuestionError, RecipeSources
from localagent.recipes.rename import rename


def carry_out(sources: RecipeSources, asked: Recipe) -> RecipeChange | Question:
    """What a recipe makes of the files; nothing is written."""
    try:
        return rename(sources, asked) if isinstance(asked, Rename) else add_parameter(sources, asked)
    except RecipeQuestionError as question:
        return question.question
