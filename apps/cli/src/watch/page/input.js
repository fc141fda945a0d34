/** Turns what mouse and keyboard do on the canvas into calls to the desktop. */

const BUTTONS = ['left', 'middle', 'right'];
/** A press becomes a drag when the mouse has moved so far, in pixels of the desktop, or after so long. */
const DRAG_PIXELS = 4;
const HOLD_MS = 500;
const MOVE_EVERY_MS = 60;
/** How far a page is scrolled by one step of a wheel, in pixels and in lines. */
const STEP = [100, 3, 1];
const MAX_STEPS = 50;
const KEYS =
  /^(Arrow(Up|Down|Left|Right)|Backspace|Delete|End|Enter|Escape|F([1-9]|1[0-2])|Home|Insert|Page(Up|Down)|Tab)$/;

/** Listens to the canvas. `send` receives each call: its name and its arguments. */
export function listen(canvas, send) {
  new Mouse(canvas, (input) => send('mouse', input)).listen();
  canvas.addEventListener('keydown', (event) => {
    const input = keyboardInput(event);
    if (input === undefined) return;
    event.preventDefault();
    send('keyboard', input);
  });
}

function keyboardInput(event) {
  const { key, ctrlKey, altKey, metaKey, shiftKey } = event;
  if (event.isComposing) return undefined;
  const isCharacter = [...key].length === 1;
  const isTyped = event.getModifierState('AltGraph') || !(ctrlKey || altKey || metaKey);
  if (isCharacter && isTyped) return { action: 'type', text: key };
  if (!isCharacter && !KEYS.test(key)) return undefined;
  const held = [
    [ctrlKey, 'ctrl'],
    [altKey, 'alt'],
    [metaKey, 'super'],
    [shiftKey, 'shift'],
  ];
  const names = held.filter(([isHeld]) => isHeld).map(([, name]) => name);
  return { action: 'press', keys: [...names, nameOf(key)].join('+') };
}

function nameOf(key) {
  if (key === ' ') return 'space';
  return key.length === 1 ? key.toLowerCase() : key;
}

class Mouse {
  #canvas;
  #send;
  /** The press that is not released: a click, until it has become a drag. */
  #press;
  #movedAt = 0;
  #later;
  /** Parts of steps of the wheel. */
  #turned = { dx: 0, dy: 0 };

  constructor(canvas, send) {
    this.#canvas = canvas;
    this.#send = send;
  }

  listen() {
    const on = (type, handle) =>
      this.#canvas.addEventListener(
        type,
        (event) => {
          event.preventDefault();
          handle(event);
        },
        { passive: false },
      );
    on('contextmenu', () => undefined);
    on('pointerdown', (event) => this.#down(event));
    on('pointermove', (event) => this.#move(event));
    on('pointerup', (event) => this.#up(event));
    on('pointercancel', (event) => this.#up(event));
    on('wheel', (event) => this.#wheel(event));
  }

  /** The position in pixels of the desktop. */
  #at({ clientX, clientY }) {
    const { left, top, width, height } = this.#canvas.getBoundingClientRect();
    const scaled = (value, size, pixels) =>
      Math.min(Math.max(Math.floor((value / size) * pixels), 0), pixels - 1);
    return {
      x: scaled(clientX - left, width, this.#canvas.width),
      y: scaled(clientY - top, height, this.#canvas.height),
    };
  }

  #down(event) {
    const button = BUTTONS[event.button];
    this.#canvas.focus();
    if (button === undefined || this.#press !== undefined) return;
    this.#canvas.setPointerCapture(event.pointerId);
    const timer = setTimeout(() => this.#drag(), HOLD_MS);
    this.#press = { at: this.#at(event), button, which: event.button, isDrag: false, timer };
  }

  /** Presses the button where it was pressed, once that is no click. */
  #drag() {
    const press = this.#press;
    if (press === undefined || press.isDrag) return;
    clearTimeout(press.timer);
    press.isDrag = true;
    this.#send({ action: 'down', ...press.at, button: press.button });
  }

  #move(event) {
    const at = this.#at(event);
    const press = this.#press;
    if (press !== undefined && !press.isDrag) {
      if (Math.hypot(at.x - press.at.x, at.y - press.at.y) < DRAG_PIXELS) return;
      this.#drag();
    }
    clearTimeout(this.#later);
    const waitMs = this.#movedAt + MOVE_EVERY_MS - performance.now();
    this.#later = setTimeout(
      () => {
        this.#movedAt = performance.now();
        this.#send({ action: 'move', ...at });
      },
      Math.max(0, waitMs),
    );
  }

  #up(event) {
    const press = this.#press;
    if (press === undefined || (event.type === 'pointerup' && event.button !== press.which)) return;
    clearTimeout(press.timer);
    clearTimeout(this.#later);
    this.#press = undefined;
    // A click is where the button was pressed.
    const at = press.isDrag ? this.#at(event) : press.at;
    this.#send({ action: press.isDrag ? 'up' : 'click', ...at, button: press.button });
  }

  #wheel(event) {
    const pixels = STEP[event.deltaMode];
    this.#turned.dx += event.deltaX / pixels;
    this.#turned.dy += event.deltaY / pixels;
    const [dx, dy] = [this.#whole('dx'), this.#whole('dy')];
    if (dx !== 0 || dy !== 0) this.#send({ action: 'scroll', ...this.#at(event), dx, dy });
  }

  /** Takes the whole steps. */
  #whole(name) {
    const steps = Math.trunc(this.#turned[name]);
    this.#turned[name] -= steps;
    return Math.min(Math.max(steps, -MAX_STEPS), MAX_STEPS);
  }
}
