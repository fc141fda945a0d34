import { validateHeaderValue } from 'node:http';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { apiKeyPrefix, looksLikeApiKey } from '../accounts/api-keys.ts';
import { normaliseEmail } from '../accounts/email.ts';
import { LIMITS } from '../limits.ts';
import { RESERVED_KEYS } from '../reserved-keys.ts';
import { isBundleName } from './bundles.ts';
import { bundleProblem } from './rules.ts';

const text = fc.string({ unit: 'binary' });
const chars = (set: string, min: number, max: number) =>
  fc.string({ unit: fc.constantFrom(...set), minLength: min, maxLength: max });
const UPPER = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const LOWER = UPPER.toLowerCase();
const DIGITS = '0123456789';

const keyName = fc
  .tuple(chars(`${UPPER}${LOWER}_`, 1, 1), chars(`${UPPER}${LOWER}${DIGITS}_`, 0, 127))
  .map((parts) => parts.join(''))
  .filter((name) => !(RESERVED_KEYS as readonly string[]).includes(name));
const goodValue = text.map((value) => value.replaceAll('\0', ''));

describe('bundle names', () => {
  const good = fc
    .tuple(chars(LOWER + DIGITS, 1, 1), chars(`${LOWER}${DIGITS}-`, 0, 62))
    .map((parts) => parts.join(''));

  test('of the documented form are valid', () => {
    fc.assert(fc.property(good, (name) => isBundleName(name)));
  });

  test('have at most 63 of the allowed characters, for any input', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          text,
          good.map((name) => `${name}\n`),
        ),
        (name) => {
          const expected =
            name.length >= 1 &&
            name.length <= 63 &&
            [...name].every((char) => `${LOWER}${DIGITS}-`.includes(char)) &&
            !name.startsWith('-');
          expect(isBundleName(name)).toBe(expected);
        },
      ),
    );
  });
});

describe('bundle values', () => {
  test('may be any text under a valid name', () => {
    fc.assert(
      fc.property(fc.dictionary(keyName, goodValue, { maxKeys: 50 }), (values) => {
        expect(bundleProblem(values)).toBeUndefined();
      }),
    );
  });

  test('are limited by their exact size in UTF-8', () => {
    const unit = fc.constantFrom('a', 'é', '€', '😀');
    fc.assert(
      fc.property(unit, fc.integer({ min: -3, max: 3 }), (char, over) => {
        const total = LIMITS.secretValueBytes + over;
        const count = Math.floor(total / Buffer.byteLength(char));
        const rest = total - count * Buffer.byteLength(char);
        const value = char.repeat(count) + 'x'.repeat(rest);
        expect(bundleProblem({ A: value })?.code).toBe(
          over > 0 ? 'secret_value_too_large' : undefined,
        );
      }),
      { numRuns: 30 },
    );
  });

  test('never appear in a problem', () => {
    const secret = 'canary-canary';
    fc.assert(
      fc.property(fc.dictionary(fc.oneof(keyName, text), fc.constant(secret)), (values) => {
        expect(JSON.stringify(bundleProblem(values) ?? {})).not.toContain(secret);
      }),
    );
  });

  test.each([
    ['a line break', 'sk-first\nsk-second'],
    ['a carriage return', 'sk-first\r\nsk-second'],
    ['a control character', 'sk-\u001bkey'],
    ['a delete character', 'sk-key\u007f'],
    ['typographic quotes', '“sk-key”'],
    ['an invisible character', 'sk-key\u200b'],
    ['too many characters', 'k'.repeat(LIMITS.llmKeyChars + 1)],
  ])('are refused as an LLM key that no header can contain: %s', (_, value) => {
    const problem = { code: 'validation_failed', path: '/values/LLM_API_KEY' };
    expect(bundleProblem({ LLM_API_KEY: value })).toMatchObject(problem);
    expect(bundleProblem({ OTHER: value })).toBeUndefined();
  });

  test.each([
    ['surrounding white space', '\ufeff sk-key \r\n'],
    ['a space', 'sk key'],
    ['Latin-1', 'clé'],
    ['nothing', ''],
    ['most characters', `${'k'.repeat(LIMITS.llmKeyChars)}\n`],
  ])('may be an LLM key with %s', (_, value) => {
    expect(bundleProblem({ LLM_API_KEY: value })).toBeUndefined();
  });

  test('may be an LLM key exactly if Node sends them in a header', () => {
    const isSent = (value: string) => {
      try {
        validateHeaderValue('x-api-key', value);
        return true;
      } catch {
        return false;
      }
    };
    fc.assert(
      fc.property(chars('a \t\r\n\u001f~\u007f\u0080ÿĀ“\ufeff', 0, 4), (value) => {
        expect(bundleProblem({ LLM_API_KEY: value }) === undefined).toBe(isSent(value.trim()));
      }),
    );
  });

  test('are refused under a reserved name, even among valid ones', () => {
    fc.assert(
      fc.property(
        fc.dictionary(keyName, goodValue, { maxKeys: 40 }),
        fc.constantFrom(...RESERVED_KEYS),
        (values, reserved) => {
          expect(bundleProblem({ ...values, [reserved]: '' })).toMatchObject({
            code: 'reserved_secret_key',
            path: `/values/${reserved}`,
          });
        },
      ),
    );
  });
});

describe('e-mail addresses', () => {
  test('are stable under repeated normalisation and cannot break a header', () => {
    fc.assert(
      fc.property(fc.oneof(text, fc.emailAddress()), (given) => {
        const email = normaliseEmail(given);
        if (email === undefined) return;
        expect(normaliseEmail(email)).toBe(email);
        expect(email).not.toMatch(/[\r\n\0\s<>,;]/);
        expect(email.length).toBeLessThanOrEqual(LIMITS.emailChars);
      }),
    );
  });

  test('are normalised without regard to case and surrounding spaces', () => {
    fc.assert(
      fc.property(fc.emailAddress(), (email) => {
        expect(normaliseEmail(`  ${email.toUpperCase()} `)).toBe(normaliseEmail(email));
      }),
    );
  });
});

describe('API keys', () => {
  const live = chars(UPPER + LOWER + DIGITS, 43, 43).map((rest) => `svc_live_${rest}`);
  const tenant = chars('0123456789abcdef', 64, 64).map((rest) => `svc_${rest}`);

  test('are recognised by their exact form', () => {
    fc.assert(
      fc.property(fc.oneof(live, tenant), (key) => {
        expect(looksLikeApiKey(key)).toBe(true);
        for (const other of [`${key}\n`, ` ${key}`, key.slice(0, -1), `${key}0`, key.toUpperCase()])
          expect(looksLikeApiKey(other)).toBe(false);
        expect(key.startsWith(apiKeyPrefix(key))).toBe(true);
        expect(apiKeyPrefix(key).length).toBeLessThan(17);
      }),
    );
  });
});
