def names_used():
    return set()
