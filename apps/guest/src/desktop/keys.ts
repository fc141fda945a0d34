import { DesktopError } from './desktop-error.ts';

const MAX_COMBINATIONS = 20;
const MAX_KEYS = 5;

/** Common names of keys, and those of the X server. Other names are passed on unchanged. */
const NAMES: Readonly<Record<string, string>> = {
  alt: 'alt',
  backspace: 'BackSpace',
  cmd: 'super',
  command: 'super',
  control: 'ctrl',
  ctrl: 'ctrl',
  del: 'Delete',
  delete: 'Delete',
  arrowdown: 'Down',
  arrowleft: 'Left',
  arrowright: 'Right',
  arrowup: 'Up',
  down: 'Down',
  end: 'End',
  enter: 'Return',
  esc: 'Escape',
  escape: 'Escape',
  home: 'Home',
  insert: 'Insert',
  left: 'Left',
  meta: 'super',
  option: 'alt',
  pagedown: 'Next',
  pageup: 'Prior',
  return: 'Return',
  right: 'Right',
  shift: 'shift',
  space: 'space',
  super: 'super',
  tab: 'Tab',
  up: 'Up',
  win: 'super',
};

/**
 * The key combinations in a text such as `ctrl+a`, or several separated by spaces, in the words of xdotool.
 * @throws a DesktopError when it contains none, too many, or something that cannot be a key
 */
export function parseKeys(text: string): string[] {
  const combinations = text.split(/\s+/).filter((part) => part !== '');
  if (combinations.length === 0) throw new DesktopError('No key is named.');
  if (combinations.length > MAX_COMBINATIONS) {
    throw new DesktopError(`At most ${MAX_COMBINATIONS} key combinations can be pressed at once.`);
  }
  return combinations.map(parseCombination);
}

function parseCombination(text: string): string {
  // A plus at the end is the key itself: `+`, `ctrl++`.
  const keys = text.endsWith('+') ? [...partsOf(text.slice(0, -1)), '+'] : partsOf(text);
  if (keys.length > MAX_KEYS) throw new DesktopError(`${text} has more than ${MAX_KEYS} keys.`);
  return keys.map((key) => parseKey(key, text)).join('+');
}

function partsOf(text: string): string[] {
  const trimmed = text.replace(/\+$/, '');
  return trimmed === '' ? [] : trimmed.split('+');
}

function parseKey(key: string, combination: string): string {
  const known = NAMES[key.toLowerCase()];
  if (known !== undefined) return known;
  if (/^f\d{1,2}$/i.test(key)) return key.toUpperCase();
  if (/^[A-Za-z0-9_]+$/.test(key)) return key;
  const [character, ...others] = key;
  if (character === undefined || others.length > 0) {
    throw new DesktopError(`${combination} is no key combination such as ctrl+a or Return.`);
  }
  return `U${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`;
}
