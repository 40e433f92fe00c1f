"""How many of what a test draws at random it tries, as tests/support/draws.h says it to those in C++."""
import os


def draws(all_cases):
    one_of = max(1, int(os.environ.get("TILEWRIGHT_DRAWS", "1").split(":")[0]))
    return -(-all_cases // one_of)
