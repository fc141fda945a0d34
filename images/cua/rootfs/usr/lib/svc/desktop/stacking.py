"""The windows of the display as the window manager stacks them."""

import Xlib.display
import Xlib.error
import Xlib.X

from geometry import contains, likeness
from keyboard import Keyboard

# Frames of the same window, with and without its decoration, share more than this.
SAME_WINDOW = 0.7


class Window:
    def __init__(self, number, name, pid, box):
        self.number, self.name, self.pid, self.box = number, name, pid, box


class Windows:
    """The managed windows at one moment, from the top one down."""

    def __init__(self, windows):
        self.windows = windows

    def of(self, pid, box):
        """The window of a process that takes about this rectangle; None for menus and other unmanaged windows."""
        own = [window for window in self.windows if window.pid == pid or pid is None]
        best = max(own, key=lambda window: likeness(window.box, box), default=None)
        return best if best is not None and likeness(best.box, box) > SAME_WINDOW else None

    def shows(self, window, point):
        """Whether no other window covers this one at a point."""
        if window is None:
            return True
        top = next((other for other in self.windows if contains(other.box, point)), None)
        return top is None or top is window


class Display:
    """A connection to the X server, which is opened again after it was lost."""

    def __init__(self):
        self.display = None
        self.keyboard = None

    def windows(self):
        return Windows(self.connected(self.read))

    def bind_keys(self, text):
        """Makes sure that the keyboard has a key for each character."""
        return self.connected(lambda: self.keyboard.bind(self.display, text))

    def connected(self, work):
        try:
            if self.display is None:
                self.display = Xlib.display.Display()
                self.keyboard = Keyboard()
            return work()
        except (Xlib.error.ConnectionClosedError, Xlib.error.DisplayError, OSError):
            self.display = None
            raise

    def read(self):
        root = self.display.screen().root
        stack = self.property(root, '_NET_CLIENT_LIST_STACKING')
        found = [self.describe(root, number) for number in reversed(stack if stack is not None else [])]
        return [window for window in found if window is not None]

    def describe(self, root, number):
        window = self.display.create_resource_object('window', number)
        try:
            if window.get_attributes().map_state != Xlib.X.IsViewable:
                return None
            size = window.get_geometry()
            at = root.translate_coords(window, 0, 0)
            left, right, top, bottom = self.property(window, '_NET_FRAME_EXTENTS') or (0, 0, 0, 0)
            # Those of GTK are shadows inside the window.
            shadow = self.property(window, '_GTK_FRAME_EXTENTS')
            if shadow is not None:
                left, right, top, bottom = (-value for value in shadow)
            box = (at.x - left, at.y - top, size.width + left + right, size.height + top + bottom)
            pid = self.property(window, '_NET_WM_PID')
            name = self.property(window, '_NET_WM_NAME')
            return Window(number, text(name) or window.get_wm_name() or '', pid[0] if pid else None, box)
        except (Xlib.error.BadWindow, Xlib.error.BadDrawable):
            # It was closed meanwhile.
            return None

    def property(self, window, name):
        value = window.get_full_property(self.display.get_atom(name), Xlib.X.AnyPropertyType)
        return None if value is None else value.value


def text(value):
    return value.decode(errors='replace') if isinstance(value, bytes) else value
