"""Elements of all windows, from the accessibility tree."""

import time

import gi

gi.require_version('Atspi', '2.0')
from gi.repository import Atspi, GLib  # noqa: E402 - the version must be chosen first

from geometry import centre, clip  # noqa: E402

CALL_MS, START_MS = 1500, 3000
MAX_NODES = 3000
MAX_VALUE = 500
DOCUMENTS = {'document web', 'document frame'}
# Under their names in web pages, so that one word finds an element wherever it comes from. Newer versions of the library
# say `button` for a push button.
ROLES = {'push button': 'button', 'button': 'button', 'toggle button': 'button', 'entry': 'textbox', 'text': 'textbox', 'password text': 'textbox',
         'check box': 'checkbox', 'radio button': 'radio', 'combo box': 'combobox', 'page tab': 'tab',
         'menu item': 'menuitem', 'check menu item': 'menuitemcheckbox', 'radio menu item': 'menuitemradio',
         'list item': 'listitem', 'table cell': 'cell', 'spin button': 'spinbutton', 'tree item': 'treeitem',
         'slider': 'slider', 'link': 'link', 'menu': 'menu', 'scroll bar': 'scrollbar', 'label': 'label',
         'heading': 'heading', 'image': 'img', 'icon': 'img', 'alert': 'alert', 'info bar': 'alert', 'terminal': 'terminal'}
# A label without a name tells nothing; a button can be clicked all the same.
ONLY_NAMED = {'label', 'img', 'alert', 'menu', 'heading', 'listitem', 'cell'}
STATES = (('focused', Atspi.StateType.FOCUSED), ('checked', Atspi.StateType.CHECKED),
          ('selected', Atspi.StateType.SELECTED), ('expanded', Atspi.StateType.EXPANDED))

Atspi.set_timeout(CALL_MS, START_MS)


class Document:
    """A web page in a window: where its process shows it."""

    def __init__(self, pid, box):
        self.pid, self.box = pid, box


class Walk:
    """One pass through the tree, until it has enough or no time is left."""

    def __init__(self, bounds, windows, deadline, limit, with_documents):
        self.bounds, self.windows, self.deadline, self.limit = bounds, windows, deadline, limit
        self.with_documents = with_documents
        self.nodes = 0
        self.truncated = False
        self.elements = []
        self.documents = []

    def run(self):
        context = GLib.MainContext.default()
        # Events keep the library's cache of names, states and children correct.
        for _ in range(1000):
            if not context.iteration(False):
                break
        desktop = Atspi.get_desktop(0)
        for index in range(desktop.get_child_count()):
            try:
                self.application(desktop.get_child_at_index(index))
            except GLib.Error:
                # It has ended, or does not answer in time.
                continue
        return self

    def application(self, application):
        if application is None:
            return
        application.clear_cache()
        pid = application.get_process_id()
        for index in range(application.get_child_count()):
            frame = application.get_child_at_index(index)
            if frame is None:
                continue
            box = extents(frame)
            window = None if box is None else self.windows.of(pid, box)
            self.node(frame, pid, window)

    def node(self, node, pid, window):
        if self.nodes >= MAX_NODES or len(self.elements) >= self.limit or time.monotonic() > self.deadline:
            self.truncated = True
            return
        self.nodes += 1
        states = node.get_state_set()
        if not states.contains(Atspi.StateType.SHOWING):
            return
        box = extents(node)
        visible = None if box is None else clip(box, self.bounds)
        name = node.get_role_name()
        if name in DOCUMENTS:
            if visible is not None:
                self.documents.append(Document(pid, box))
            if not self.with_documents:
                return
        role = ROLES.get(name)
        if role is not None and visible is not None and self.windows.shows(window, centre(visible)):
            self.add(node, role, visible, states)
        for index in range(node.get_child_count()):
            child = node.get_child_at_index(index)
            if child is not None:
                self.node(child, pid, window)

    def add(self, node, role, box, states):
        label = node.get_name() or ''
        if label == '' and role in ONLY_NAMED:
            return
        named = [word for word, state in STATES if states.contains(state)]
        if not states.contains(Atspi.StateType.SENSITIVE) and not states.contains(Atspi.StateType.ENABLED):
            named.append('disabled')
        element = {'key': ('window', node.app.bus_name, node.path), 'role': role, 'name': label, 'box': box,
                   'source': 'window', 'states': named}
        if role == 'textbox' and node.get_role_name() != 'password text':
            element['value'] = value_of(node)
        self.elements.append(element)


def extents(node):
    try:
        box = Atspi.Component.get_extents(node, Atspi.CoordType.SCREEN)
    except GLib.Error:
        # It has no place on the display, like an application.
        return None
    return (box.x, box.y, box.width, box.height) if box.width > 0 and box.height > 0 else None


def value_of(node):
    try:
        return Atspi.Text.get_text(node, 0, min(MAX_VALUE, Atspi.Text.get_character_count(node)))
    except GLib.Error:
        return ''
