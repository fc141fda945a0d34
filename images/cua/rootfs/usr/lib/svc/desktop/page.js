// Runs in an isolated world of each page: the page's own scripts neither see nor change it. Returns the visible
// elements, in CSS pixels of the viewport. browser.py calls this function.
(limit) => {
  globalThis.svcElements ??= { token: `${Math.random()}`, ids: new WeakMap(), next: 1 };
  const state = globalThis.svcElements;
  const MAX_NODES = 20000;
  const INTERACTIVE =
    'a[href],button,input,select,textarea,summary,label,[role],[contenteditable=""],[contenteditable=true],[tabindex],[onclick],h1,h2,h3,h4,h5,h6,img[alt]';
  const IGNORED = new Set(['none', 'presentation', 'generic', 'LabelText', '']);
  const found = [];
  let visited = 0;
  let truncated = false;

  const idOf = (element) => {
    let id = state.ids.get(element);
    if (id === undefined) {
      id = state.next++;
      state.ids.set(element, id);
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
  const add = (element, root, left, top) => {
    const rect = element.getBoundingClientRect();
    if (rect.width < 2 || rect.height < 2) return;
    const view = element.ownerDocument.defaultView;
    const x0 = Math.max(0, rect.left);
    const y0 = Math.max(0, rect.top);
    const x1 = Math.min(view.innerWidth, rect.right);
    const y1 = Math.min(view.innerHeight, rect.bottom);
    if (x1 - x0 < 2 || y1 - y0 < 2) return;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return;
    const hit = deepestAt(element.ownerDocument, (x0 + x1) / 2, (y0 + y1) / 2);
    if (!related(element, hit)) return;
    const role = element.computedRole ?? element.getAttribute('role') ?? element.localName;
    const name = element.computedName ?? element.getAttribute('aria-label') ?? element.innerText;
    const focusable = element.tabIndex >= 0 || element.onclick !== null;
    if (IGNORED.has(role) && !(focusable && !(element instanceof view.HTMLLabelElement))) return;
    const states = [];
    if (root.activeElement === element) states.push('focused');
    if (element.checked || element.getAttribute('aria-checked') === 'true') states.push('checked');
    if (element.getAttribute('aria-selected') === 'true') states.push('selected');
    if (element.getAttribute('aria-expanded') === 'true') states.push('expanded');
    if (element.matches(':disabled,[aria-disabled=true]')) states.push('disabled');
    const value = element.matches(
      'input:not([type=password]):not([type=checkbox]):not([type=radio]),textarea,select',
    )
      ? String(element.selectedOptions?.[0]?.label ?? element.value).slice(0, 500)
      : undefined;
    found.push({
      id: idOf(element),
      role: IGNORED.has(role) ? 'generic' : role,
      name: String(name ?? '')
        .trim()
        .slice(0, 200),
      box: [left + x0, top + y0, x1 - x0, y1 - y0],
      states,
      value,
    });
  };
  const walk = (root, left, top) => {
    for (const element of root.querySelectorAll('*')) {
      visited += 1;
      if (visited > MAX_NODES || found.length >= limit) {
        truncated = true;
        return;
      }
      if (element.matches(INTERACTIVE)) add(element, root, left, top);
      if (element.shadowRoot) walk(element.shadowRoot, left, top);
      if (element.localName === 'iframe' || element.localName === 'frame') {
        // Null for a frame of another origin.
        const inner = element.contentDocument;
        if (!inner) continue;
        const rect = element.getBoundingClientRect();
        walk(inner, left + rect.left + element.clientLeft, top + rect.top + element.clientTop);
      }
    }
  };
  walk(document, 0, 0);
  return {
    token: state.token,
    visible: document.visibilityState === 'visible',
    scale: devicePixelRatio,
    window: [screenX, screenY, outerWidth, outerHeight],
    inner: [innerWidth, innerHeight],
    truncated,
    elements: found,
  };
};
