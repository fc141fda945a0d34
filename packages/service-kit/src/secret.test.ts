import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import { Secret } from './secret.ts';

it('shows its value only through reveal()', () => {
  const secret = new Secret('canary');
  const shown = [
    String(secret),
    `${secret}`,
    JSON.stringify({ secret }),
    inspect({ secret }, { showHidden: true, depth: 5 }),
    Object.values(secret).join(),
    JSON.stringify(structuredClone({ ...secret })),
  ];
  expect(shown.join()).not.toContain('canary');
  expect(secret.reveal()).toBe('canary');
});
