"""In which order candidates are tried: costs, model scores, learned ranker."""
