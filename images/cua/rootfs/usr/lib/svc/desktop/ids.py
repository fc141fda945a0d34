"""Ids of elements that stay the same from call to call, as long as the element lives."""

import collections

MAX_IDS = 20_000


class Ids:
    """Gives each key an id, and remembers the keys that were used most recently."""

    def __init__(self):
        self.ids = collections.OrderedDict()
        self.next = 1

    def of(self, key):
        known = self.ids.get(key)
        if known is None:
            known = f'e{self.next}'
            self.next += 1
            self.ids[key] = known
            if len(self.ids) > MAX_IDS:
                self.ids.popitem(last=False)
        else:
            self.ids.move_to_end(key)
        return known
