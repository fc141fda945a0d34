"""Ids of elements that stay the same from call to call, as long as the element lives."""

import collections

MAX_IDS = 20_000


class Ids:
    """Gives each key an id, and remembers the keys that were used most recently."""

    def __init__(self):
        self.ids = collections.OrderedDict()
        self.keys = {}
        self.next = 1

    def of(self, key):
        known = self.ids.get(key)
        if known is None:
            known = f'e{self.next}'
            self.next += 1
            self.ids[key] = known
            self.keys[known] = key
            if len(self.ids) > MAX_IDS:
                _, forgotten = self.ids.popitem(last=False)
                del self.keys[forgotten]
        else:
            self.ids.move_to_end(key)
        return known

    def key(self, known):
        """The key of an id; None for an id that was never given or is forgotten."""
        return self.keys.get(known)
