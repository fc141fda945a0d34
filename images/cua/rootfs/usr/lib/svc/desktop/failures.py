"""Why one element cannot be given."""


class Gone(Exception):
    """The element no longer exists."""


class Hidden(Exception):
    """The element exists, but nothing of it can be seen on the display at the moment."""


class Unanswered(Exception):
    """The program that shows the element did not answer in time."""
