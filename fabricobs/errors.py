"""Mistakes of the user, as against those of the program: their text is all that is shown."""


class UserError(Exception):
    """Something the user can mend; the text says what, where and how."""
