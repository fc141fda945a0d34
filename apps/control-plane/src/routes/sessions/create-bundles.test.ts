import { environmentBytes, LIMITS } from '@svc/contract';
import { describe, expect, test } from 'vitest';
import { type Refusal, useSessionWorld } from '../../../test/session-world.ts';

const world = useSessionWorld();

describe('a session', () => {
  test('gets the values of all its bundles, which only its worker receives', async () => {
    const { body, text } = await world().create({ secrets: ['llm', 'extra', 'llm'] });
    expect(await world().secretsOf(world().placed.vm_id)).toEqual({
      llm: { api_key: 'key-1', model: expect.any(String) },
      env: { TOKEN: 'value-1', EXTRA: 'value-2' },
    });
    const everything = [
      text,
      JSON.stringify(world().worker.placed),
      ...world().harness.logLines,
    ].join();
    const stored = await world().harness.dump();
    for (const secret of ['key-1', 'value-1', 'value-2']) {
      expect(everything).not.toContain(secret);
      expect(stored).not.toContain(secret);
    }
    expect([...world().harness.logLines, stored].join()).not.toContain(String(body.jwt));
  });
});

describe('the values of all bundles together', () => {
  const MANY = Object.fromEntries(
    Array.from({ length: LIMITS.secretKeysPerBundle }, (_, n) => [
      `V${n}`,
      '字'.repeat(LIMITS.secretValueBytes / 3),
    ]),
  );
  /** Values for the rest of what a session may have, beside those of the other bundles. */
  function rest(): Record<string, string> {
    const left = LIMITS.sessionEnvBytes - environmentBytes({ ...MANY, TOKEN: 'value-1' });
    const part = Math.ceil(left / 20);
    const lengthOf = (n: number) => Math.min(part, left - n * part) - environmentBytes({ R10: '' });
    return Object.fromEntries(
      Array.from({ length: 20 }, (_, n) => [`R${n + 10}`, 'r'.repeat(lengthOf(n))]),
    );
  }

  test('may be as large as the environment of a session, without the keys of the model', async () => {
    const { harness, account } = world();
    await harness.addBundle(account.key, 'many', MANY);
    const values = rest();
    await harness.addBundle(account.key, 'rest', values);
    const { status, text } = await world().create({ secrets: ['llm', 'many', 'rest'] });
    expect(status, text).toBe(201);
    const { env } = await world().secretsOf(world().placed.vm_id);
    expect(environmentBytes(env)).toBe(LIMITS.sessionEnvBytes);
    await world().reset();
    await harness.addBundle(account.key, 'one-byte', { ...values, R29: `${values.R29}r` });
    await world().expectRefused({ secrets: ['llm', 'many', 'one-byte'] }, 400, 'secrets_too_large');
  });
});

describe('refusals', () => {
  test.each<Refusal>([
    ['no bundles', { secrets: [] }, 400, 'llm_api_key_missing'],
    ['no list of bundles', { secrets: undefined }, 400, 'llm_api_key_missing'],
    ['bundles without a key', { secrets: ['extra'] }, 400, 'llm_api_key_missing'],
    ['bundles that collide', { secrets: ['llm', 'other-llm'] }, 400, 'secret_key_collision'],
    ['a bundle that is not there', { secrets: ['llm', 'none'] }, 404, 'bundle_not_found'],
    ['a bundle of no possible name', { secrets: ['llm', 'A\0'] }, 404, 'bundle_not_found'],
  ])('%s', (_, changes, status, code) => world().expectRefused(changes, status, code));

  test('treat a key of white space as missing', async () => {
    const { harness, account } = world();
    await harness.addBundle(account.key, 'blank', { LLM_API_KEY: ' \n' });
    await world().expectRefused({ secrets: ['blank'] }, 400, 'llm_api_key_missing');
  });

  test('treat a bundle of another tenant as missing', async () => {
    const stranger = await world().harness.signUp();
    const answer = await world().create({}, { key: stranger.key });
    expect(answer).toMatchObject({ status: 404, body: { code: 'bundle_not_found' } });
  });
});
