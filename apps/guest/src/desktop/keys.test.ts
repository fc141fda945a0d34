import { expect, test } from 'vitest';
import { parseKeys } from './keys.ts';

test.each([
  ['ctrl+a', ['ctrl+a']],
  ['Enter', ['Return']],
  ['CTRL+SHIFT+ArrowLeft', ['ctrl+shift+Left']],
  ['cmd+f5', ['super+F5']],
  ['ctrl++', ['ctrl+U002b']],
  ['+', ['U002b']],
  ['ctrl+a Delete', ['ctrl+a', 'Delete']],
  ['é', ['U00e9']],
])('%s is understood', (text, keys) => {
  expect(parseKeys(text)).toEqual(keys);
});

test.each(['', '  ', 'ctrl+;;', 'a+b+c+d+e+f', Array(21).fill('a').join(' ')])(
  '“%s” is refused with a reason',
  (text) => {
    expect(() => parseKeys(text)).toThrow(/key/);
  },
);
