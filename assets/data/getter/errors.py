"""One error for the user: what happened, why, what to do; the number is the exit code of the program."""

USAGE, CONFIG, STORAGE, NOT_FOUND = 2, 3, 7, 8  # the same numbers as the command line's (core/base/error.h)


class GetError(Exception):
    def __init__(self, code, what, why="", hint=""):
        super().__init__(what)
        self.code, self.what, self.why, self.hint = code, what, why, hint

    def __str__(self):
        return "; ".join(x for x in (self.what, self.why, self.hint) if x)
