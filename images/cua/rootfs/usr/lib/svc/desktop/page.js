// Runs in an isolated world of each page: the page's own scripts neither see nor change it. browser.py calls the two
// functions of `svcElements`, which describe visible elements in CSS pixels of the viewport.
(() => {
  const MAX_NODES = 20000;
  const INTERACTIVE =
    'a[href],button,input,select,textarea,summary,label,[role],[contenteditable=""],[contenteditable=true],[tabindex],[onclick],h1,h2,h3,h4,h5,h6,img[alt]';
  const IGNORED = new Set(['none', 'presentation', 'generic', 'LabelText', '']);
  const token = `${Math.random()}`;
  const ids = new WeakMap();
  const elements = new Map();
  const collected = new FinalizationRegistry((id) => elements.delete(id));
  let next = 1;

  const idOf = (element) => {
    let id = ids.get(element);
    if (id === undefined) {
      id = next++;
      ids.set(element, id);
      elements.set(id, new WeakRef(element));
      collected.register(element, id);
    }
    return id;
  };
  const deepestAt = (root, x, y) => {
    let hit = root.elementFromPoint(x, y);
    while (hit?.shadowRoot) {
      const inner = hit.shadowRoot.elementFromPoint(x, y);
      if (!inner || inner === hit) break;
      hit = inner;
    }
    return hit;
  };
  const related = (element, hit) => {
    for (let node = hit; node; node = node.parentNode ?? node.host) {
      if (node === element) return true;
    }
    return (
      hit !== null && (element.contains(hit) || hit?.control === element || hit.contains(element))
    );
  };
  // Where the document of a frame begins in the viewport of the page. Frames of another origin are never looked into.
  const originOf = (view) => {
    let [left, top] = [0, 0];
    for (
      let frame = view.frameElement;
      frame;
      frame = frame.ownerDocument.defaultView.frameElement
    ) {
      const rect = frame.getBoundingClientRect();
      left += rect.left + frame.clientLeft;
      top += rect.top + frame.clientTop;
    }
    return [left, top];
  };
  // What can be seen of an element; undefined if that is nothing, or if it is of no use.
  const describe = (element) => {
    const rect = element.getBoundingClientRect();
    if (rect.width < 2 || rect.height < 2) return undefined;
    const view = element.ownerDocument.defaultView;
    const x0 = Math.max(0, rect.left);
    const y0 = Math.max(0, rect.top);
    const x1 = Math.min(view.innerWidth, rect.right);
    const y1 = Math.min(view.innerHeight, rect.bottom);
    if (x1 - x0 < 2 || y1 - y0 < 2) return undefined;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) {
      return undefined;
    }
    const hit = deepestAt(element.ownerDocument, (x0 + x1) / 2, (y0 + y1) / 2);
    if (!related(element, hit)) return undefined;
    const role = element.computedRole ?? element.getAttribute('role') ?? element.localName;
    const focusable = element.tabIndex >= 0 || element.onclick !== null;
    if (IGNORED.has(role) && !(focusable && !(element instanceof view.HTMLLabelElement))) {
      return undefined;
    }
    const name = element.computedName ?? element.getAttribute('aria-label') ?? element.innerText;
    const states = [];
    if (element.getRootNode().activeElement === element) states.push('focused');
    if (element.checked || element.getAttribute('aria-checked') === 'true') states.push('checked');
    if (element.getAttribute('aria-selected') === 'true') states.push('selected');
    if (element.getAttribute('aria-expanded') === 'true') states.push('expanded');
    if (element.matches(':disabled,[aria-disabled=true]')) states.push('disabled');
    const value = element.matches(
      'input:not([type=password]):not([type=checkbox]):not([type=radio]),textarea,select',
    )
      ? String(element.selectedOptions?.[0]?.label ?? element.value).slice(0, 500)
      : undefined;
    const [left, top] = originOf(view);
    return {
      id: idOf(element),
      role: IGNORED.has(role) ? 'generic' : role,
      name: String(name ?? '')
        .trim()
        .slice(0, 200),
      box: [left + x0, top + y0, x1 - x0, y1 - y0],
      states,
      value,
    };
  };
  const answer = (found, more) => ({
    token,
    visible: document.visibilityState === 'visible',
    scale: devicePixelRatio,
    window: [screenX, screenY, outerWidth, outerHeight],
    inner: [innerWidth, innerHeight],
    elements: found,
    ...more,
  });

  globalThis.svcElements = {
    // The visible elements, and whether there are more than `limit`.
    list(limit) {
      const found = [];
      let visited = 0;
      let truncated = false;
      const walk = (root) => {
        for (const element of root.querySelectorAll('*')) {
          visited += 1;
          if (visited > MAX_NODES || found.length >= limit) {
            truncated = true;
            return;
          }
          if (element.matches(INTERACTIVE)) {
            const described = describe(element);
            if (described) found.push(described);
          }
          if (element.shadowRoot) walk(element.shadowRoot);
          // Null for a frame of another origin.
          if (element.contentDocument) walk(element.contentDocument);
        }
      };
      if (document.visibilityState === 'visible') walk(document);
      return answer(found, { truncated });
    },
    // One element, if it can be seen, and whether it is still part of the page.
    find(id) {
      const element = elements.get(id)?.deref();
      const exists = element?.isConnected === true && element.ownerDocument.defaultView !== null;
      const described = exists ? describe(element) : undefined;
      return answer(described ? [described] : [], { exists });
    },
  };
})();
