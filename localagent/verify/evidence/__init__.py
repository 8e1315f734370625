"""How strong the evidence for a patch is: coverage, mutants, old against new, necessity."""
