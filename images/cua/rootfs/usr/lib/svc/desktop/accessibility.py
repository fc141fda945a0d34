"""Elements of all windows, from the accessibility tree."""

import collections
import time

import gi

gi.require_version('Atspi', '2.0')
from gi.repository import Atspi, GLib  # noqa: E402 - the version must be chosen first

from failures import Gone, Hidden, Unanswered  # noqa: E402
from geometry import centre, clip  # noqa: E402

# Time for the answers of one program, and of one that has left the last question unanswered.
ANSWER_SECONDS, SILENT_SECONDS = 8, 3
MAX_EVENTS = 1000
MAX_NODES = 3000
MAX_VALUE = 500
DOCUMENTS = {'document web', 'document frame'}
DIALOGS = {'dialog', 'alert'}
# Under their names in web pages, so that one word finds an element wherever it comes from. Newer versions of the library
# say `button` for a push button.
ROLES = {'push button': 'button', 'button': 'button', 'toggle button': 'button', 'entry': 'textbox', 'text': 'textbox', 'password text': 'textbox',
         'check box': 'checkbox', 'radio button': 'radio', 'combo box': 'combobox', 'page tab': 'tab',
         'menu item': 'menuitem', 'check menu item': 'menuitemcheckbox', 'radio menu item': 'menuitemradio',
         'list item': 'listitem', 'table cell': 'cell', 'spin button': 'spinbutton', 'tree item': 'treeitem',
         'slider': 'slider', 'link': 'link', 'menu': 'menu', 'scroll bar': 'scrollbar', 'label': 'label', 'static': 'label',
         'heading': 'heading', 'image': 'img', 'icon': 'img', 'alert': 'alert', 'info bar': 'alert', 'terminal': 'terminal'}
# A label without a name tells nothing; a button can be clicked all the same.
ONLY_NAMED = {'label', 'img', 'alert', 'menu', 'heading', 'listitem', 'cell'}
STATES = (('focused', Atspi.StateType.FOCUSED), ('checked', Atspi.StateType.CHECKED),
          ('selected', Atspi.StateType.SELECTED), ('expanded', Atspi.StateType.EXPANDED))


def rule(names):
    """Chooses the parts that are showing and have one of these roles."""
    showing = Atspi.StateSet.new([Atspi.StateType.SHOWING])
    roles = [role for role in map(Atspi.Role, range(Atspi.Role.LAST_DEFINED)) if Atspi.role_get_name(role) in names]
    all_, any_ = Atspi.CollectionMatchType.ALL, Atspi.CollectionMatchType.ANY
    return Atspi.MatchRule.new(showing, all_, {}, any_, roles, any_, [], all_, False)


LISTED, PAGES = rule(ROLES.keys() | DOCUMENTS | DIALOGS), rule(DOCUMENTS)


class Document:
    """A web page in a window: where its process shows it."""

    def __init__(self, node, box):
        self.node, self.box = node, box


class Found:
    """What one pass through the tree has found."""

    def __init__(self):
        self.elements = []
        self.documents = []
        self.truncated = False
        self.has_dialog = False


class Tree:
    """The accessibility tree of the display. Belongs to one thread."""

    def __init__(self):
        # The parts of windows that became elements, with their windows, by key.
        self.nodes = collections.OrderedDict()
        self.documents = []
        # Names on the bus of the programs that have left the last question unanswered.
        self.silent = set()

    def find(self, bounds, windows, browser, deadline, limit):
        """Up to `limit` elements that can be seen, except those in the pages of the process `browser`."""
        walk = Walk(self, bounds, windows, deadline, limit, browser)
        walk.run()
        while len(self.nodes) > MAX_NODES:
            self.nodes.popitem(last=False)
        self.documents = walk.found.documents
        return walk.found

    def element(self, key, bounds, windows, deadline):
        """One element as it is now. Raises one of `failures`."""
        if key not in self.nodes:
            raise Gone()
        node, frame = self.nodes[key]
        handle_events()
        walk = Walk(self, bounds, windows, deadline, 1)
        walk.ask(frame, lambda: walk.again(node, frame))
        if not walk.found.elements:
            raise Hidden()
        return walk.found.elements[0]

    def current_documents(self, deadline):
        """The web pages of the last pass where they are now."""
        walk = Walk(self, None, None, deadline, 1)
        documents = []
        for document in self.documents:
            box = walk.ask(document.node, lambda: extents(document.node))
            if box is not None:
                documents.append(Document(document.node, box))
        return documents


class Walk:
    """One pass through the tree, until it has enough or no time is left."""

    def __init__(self, tree, bounds, windows, deadline, limit, browser=None):
        self.tree, self.bounds, self.windows, self.deadline, self.limit = tree, bounds, windows, deadline, limit
        self.browser = browser
        self.found = Found()
        self.nodes = 0
        self.patience = deadline

    def run(self):
        handle_events()
        desktop = Atspi.get_desktop(0)
        for index in range(desktop.get_child_count()):
            application = desktop.get_child_at_index(index)
            if application is None:
                continue
            try:
                self.ask(application, lambda: self.application(application))
            except Gone:
                continue
            except Unanswered:
                self.found.truncated = True

    def ask(self, node, work):
        """Asks the program of a part of a window. Raises Unanswered when that takes too long, and Gone when it has ended."""
        bus = node.app.bus_name if node.app is not None else None
        now = time.monotonic()
        self.patience = min(self.deadline, now + (SILENT_SECONDS if bus in self.tree.silent else ANSWER_SECONDS))
        milliseconds = max(1, int((self.patience - now) * 1000))
        Atspi.set_timeout(milliseconds, milliseconds)
        self.tree.silent.discard(bus)
        answer, problem = None, None
        try:
            answer = work()
        except (GLib.Error, Gone, Unanswered) as error:
            problem = error
        if time.monotonic() >= self.patience:
            self.tree.silent.add(bus)
            raise Unanswered() from problem
        if problem is not None:
            raise Gone() from problem
        return answer

    def check(self):
        """Raises Unanswered when the program has had its time. The library often returns a wrong value instead of an error."""
        if time.monotonic() >= self.patience:
            raise Unanswered()

    def application(self, application):
        application.clear_cache()
        is_browser = application.get_process_id() == self.browser
        for index in range(application.get_child_count()):
            frame = application.get_child_at_index(index)
            if frame is None:
                continue
            window = self.window(frame)
            self.check()
            try:
                parts = matches_outside_page(frame) if is_browser else matches(frame, LISTED)
            except GLib.Error:
                self.check()
                self.node(frame, frame, window)
                continue
            for part in parts:
                if self.is_enough():
                    break
                self.consider_alive(part, frame, window)

    def again(self, node, frame):
        """Looks at one part again."""
        node.clear_cache()
        states = node.get_state_set()
        self.check()
        if states is None or states.contains(Atspi.StateType.DEFUNCT):
            raise Gone()
        if states.contains(Atspi.StateType.SHOWING):
            self.consider(node, frame, self.window(frame))

    def window(self, frame):
        box = extents(frame)
        return None if box is None else self.windows.of(frame.get_process_id(), box)

    def node(self, node, frame, window):
        """Looks at a part of a window and those in it, one by one: its program cannot choose the ones that matter itself."""
        if self.is_enough():
            return
        self.nodes += 1
        if not is_showing(node):
            return
        self.consider_alive(node, frame, window)
        for index in range(node.get_child_count()):
            child = node.get_child_at_index(index)
            if child is not None:
                self.node(child, frame, window)

    def is_enough(self):
        if self.nodes < MAX_NODES and len(self.found.elements) < self.limit and time.monotonic() < self.deadline:
            return False
        self.found.truncated = True
        return True

    def consider_alive(self, node, frame, window):
        try:
            self.consider(node, frame, window)
        except GLib.Error:
            # Otherwise it is gone already.
            self.check()

    def consider(self, node, frame, window):
        """Adds a part that is showing to what was found, if it is of use."""
        name = node.get_role_name()
        self.found.has_dialog = self.found.has_dialog or name in DIALOGS
        role = ROLES.get(name)
        if role is None and name not in DOCUMENTS:
            return
        label = node.get_name() or ''
        if label == '' and role in ONLY_NAMED:
            return
        box = extents(node)
        visible = None if box is None else clip(box, self.bounds)
        if visible is None:
            return
        if role is None:
            self.found.documents.append(Document(node, box))
        elif self.windows.shows(window, centre(visible)):
            self.add(node, frame, role, label, visible, name == 'password text')

    def add(self, node, frame, role, label, box, is_secret):
        states = node.get_state_set()
        if states is None:
            return
        named = [word for word, state in STATES if states.contains(state)]
        if not states.contains(Atspi.StateType.SENSITIVE) and not states.contains(Atspi.StateType.ENABLED):
            named.append('disabled')
        key = ('window', node.app.bus_name, node.path)
        element = {'key': key, 'role': role, 'name': label, 'box': box, 'source': 'window', 'states': named}
        if role == 'textbox' and not is_secret:
            element['value'] = value_of(node)
        self.check()
        self.tree.nodes[key] = (node, frame)
        self.tree.nodes.move_to_end(key)
        self.found.elements.append(element)


def handle_events():
    """Reads what programs have sent meanwhile, such as the late answers of those that hung."""
    context = GLib.MainContext.default()
    for _ in range(MAX_EVENTS):
        if not context.iteration(False):
            break


def matches(node, chosen, most=MAX_NODES):
    """
    The parts of a window that a rule chooses. Their program applies it: an emulated processor needs a second to ask for
    each part. Raises a GLib.Error for a program that does not know rules.
    """
    return Atspi.Collection.get_matches(node, chosen, Atspi.CollectionSortOrder.CANONICAL, most, True)


def matches_outside_page(frame):
    """The same for a window of the browser, and its page, but nothing inside that: a page can be large."""
    page = next(iter(matches(frame, PAGES, 1)), None)
    if page is None:
        return matches(frame, LISTED)
    # Despite its name, it leaves out only what is inside the page, and not what comes after it.
    children = Atspi.CollectionTreeTraversalType.RESTRICT_CHILDREN
    canonical = Atspi.CollectionSortOrder.CANONICAL
    return [page, *Atspi.Collection.get_matches_to(frame, page, LISTED, canonical, children, False, MAX_NODES, True)]


def is_showing(node):
    states = node.get_state_set()
    return states is not None and states.contains(Atspi.StateType.SHOWING)


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
