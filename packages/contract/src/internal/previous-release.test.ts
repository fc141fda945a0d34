import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { differences } from '../../test/compatibility.ts';
import { internalSchemas, type Schema } from '../../test/internal-schemas.ts';

/** Recorded by `npm run record-release` at the last release. */
const file = new URL('../../test/previous-release.json', import.meta.url);
const previous: Record<string, Schema> = JSON.parse(await readFile(file, 'utf8'));
const today = internalSchemas();

test.each(Object.keys(previous))('%s passes between this version and the last one', (name) => {
  const [before, now] = [previous[name] ?? {}, today[name]];
  if (now === undefined) throw new Error('this version has no such message');
  expect(differences(before, now), 'sent by the last version').toEqual([]);
  expect(differences(now, before), 'sent by this version').toEqual([]);
});

const text = { type: 'string' };
const object = (properties: Record<string, Schema>, required = Object.keys(properties)) => ({
  type: 'object',
  properties,
  required,
});

test.each<[what: string, sent: Schema, received: Schema]>([
  ['a field that is missing', object({}), object({ a: text })],
  ['a field that may be missing', object({ a: text }, []), object({ a: text })],
  ['another type', object({ a: { type: 'number' } }), object({ a: { type: 'integer' } })],
  ['a longer text', { type: 'string', maxLength: 9 }, { type: 'string', maxLength: 8 }],
  ['a lower number', { type: 'integer' }, { type: 'integer', minimum: 0 }],
  ['another form', { type: 'string' }, { type: 'string', pattern: 'a' }],
  ['a new value', { type: 'string', 'x-known': ['a', 'b'] }, { type: 'string', enum: ['a'] }],
  ['an open list', text, { type: 'string', enum: ['a'] }],
  ['a new item', { type: 'array', items: text }, { type: 'array', items: { const: 'a' } }],
  ['a new kind', { anyOf: [{ const: 1 }, { const: 2 }] }, { anyOf: [{ const: 1 }] }],
  [
    'an entry of a map',
    { type: 'object', additionalProperties: text },
    { type: 'object', additionalProperties: { type: 'number' } },
  ],
])('notices %s', (_what, sent, received) => {
  expect(differences(sent, received)).not.toEqual([]);
});

test.each<[what: string, sent: Schema, received: Schema]>([
  ['a new field', object({ a: text, b: text }), object({ a: text })],
  ['a field that need not be there', object({}), object({ a: text }, [])],
  [
    'a new value of an open list',
    { type: 'string', 'x-known': ['a', 'b'] },
    { type: 'string', 'x-known': ['a'] },
  ],
  ['a smaller number', { type: 'integer', maximum: 8 }, { type: 'number', maximum: 9 }],
])('allows %s', (_what, sent, received) => {
  expect(differences(sent, received)).toEqual([]);
});
