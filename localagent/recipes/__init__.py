"""Recipes: changes that a rule makes over all files of a repository, from an instruction in words, without a model."""
