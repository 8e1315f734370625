"""Models that hold a conversation and call tools: behind a Unix socket, or in process through llama.cpp's templates."""
