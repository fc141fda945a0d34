"""Keys for characters that the keyboard layout of the display lacks.

A character keeps its key until many others have needed one. Programs look up what a key means when they get to it,
which can be long after it was pressed: a key that changed back at once would have become something else by then.
"""

import collections

FIRST, LAST = 8, 255
# The media keys of the layout, which nobody presses here.
MEDIA_KEYS = range(0x10080000, 0x10090000)


class Keyboard:
    """The spare keys of a display. Belongs to the thread of its display."""

    def __init__(self):
        self.bound = None

    def bind(self, display, text):
        """Makes sure that there is a key for each character, and returns how many keys were changed."""
        if self.bound is None:
            self.bound = collections.OrderedDict((key, None) for key in spare(display))
        changed = 0
        wanted = {keysym(character) for character in text if character not in '\n\t\r'}
        for key, bound in list(self.bound.items()):
            if bound in wanted:
                self.bound.move_to_end(key)
        for symbol in sorted(wanted):
            if symbol in self.bound.values() or display.keysym_to_keycode(symbol):
                continue
            key = next(iter(self.bound), None)
            if key is None:
                break
            display.change_keyboard_mapping(key, [(symbol, symbol)])
            self.bound[key] = symbol
            self.bound.move_to_end(key)
            changed += 1
        display.sync()
        return changed


def spare(display):
    keys = display.get_keyboard_mapping(FIRST, LAST - FIRST + 1)
    return [FIRST + index for index, symbols in enumerate(keys) if all(symbol == 0 or symbol in MEDIA_KEYS for symbol in symbols)]


def keysym(character):
    """The X server's number for a character: that of Latin-1, or a marked Unicode one."""
    code = ord(character)
    return code if 0x20 <= code < 0x7F or 0xA0 <= code < 0x100 else 0x01000000 | code
