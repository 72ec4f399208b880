"""The parts of get_data.py: archives (fetching), job (splits, writing), and one module a kind of set."""
