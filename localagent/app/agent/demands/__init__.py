"""What an instruction asks for in so many words, and no line of a change answers."""
