"""llama.cpp's own chat code: a C++ shim that `make setup` compiles, and the confined helper process that runs it."""
