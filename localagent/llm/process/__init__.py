"""The process in which llama.cpp runs, its protocol, and its clients."""
