import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type GatewayGuest, GatewayLab, messages } from '../../test/gateway-lab.ts';
import { RateClock } from '../../test/rate-clock.ts';
import type { ByteRates } from '../rates/byte-rates.ts';
import { gatewayRates } from './gateway-rates.ts';

const PER_SECOND = 32 * 1024;
const BURST = 8 * PER_SECOND;
const CHAT = '/openai/chat/completions';
const LONG = 'x'.repeat(400_000);
/** The rate does not hold back the chunk that exceeds it. */
const CHUNK = 64 * 1024;
let lab: GatewayLab;

beforeAll(async () => {
  lab = await GatewayLab.open();
});

afterEach(() => lab.reset());

afterAll(() => lab[Symbol.asyncDispose]());

/** Makes a request with a long body that gets a long answer. Returns the bytes of both. */
async function moved({ ask }: GatewayGuest, path: string): Promise<number> {
  lab.script({ text: LONG });
  const request = JSON.stringify({ model: 'm', messages, user: LONG });
  const { statusCode, body } = await ask(path, { body: request });
  expect(statusCode).toBe(200);
  return request.length + (await body.bytes()).length;
}

/** A tenant that has moved more than its burst, by a clock that stands still; resolves `waits` when a request waits. */
function owing(): { rates: ByteRates; waits: Promise<void> } {
  const waits = Promise.withResolvers<void>();
  const rates = gatewayRates(PER_SECOND, {
    now: () => 0,
    sleep: (_ms, signal) => {
      waits.resolve();
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
    },
  });
  return { rates, waits: waits.promise };
}

const running = async ({ metrics }: GatewayGuest) =>
  (await metrics.metrics()).match(/^svc_worker_llm_requests_running .*/m)?.[0];

test.each([
  ['anthropic', '/anthropic/v1/messages'],
  ['openai', CHAT],
] as const)(
  'requests and answers of %s are slowed to one rate of the tenant',
  async (vendor, path) => {
    const time = new RateClock();
    const guest = await lab.start(vendor, {}, { rates: gatewayRates(PER_SECOND, time) });
    let bytes = 0;
    for (let round = 0; round < 3; round += 1) bytes += await moved(guest, path);
    expect(bytes).toBeGreaterThan(6 * LONG.length);
    expect(time.waited).toBeGreaterThan(((bytes - BURST - CHUNK) / PER_SECOND) * 1000);
    expect(time.waited).toBeLessThan(((bytes - BURST) / PER_SECOND) * 1000 + 1);
  },
);

test('another tenant does not wait, nor does a burst', async () => {
  const time = new RateClock();
  const rates = gatewayRates(32 * PER_SECOND, time);
  rates.spend('usr_other', 1000 * BURST);
  await moved(await lab.start('openai', {}, { rates }), CHAT);
  expect(time.waited).toBe(0);
});

test('a request that waits ends when its sandbox leaves', async () => {
  const { rates, waits } = owing();
  rates.spend('usr_1', BURST + 1);
  const guest = await lab.start('openai', {}, { rates });
  const leaving = new AbortController();
  const left = guest.ask(CHAT, { body: { messages }, signal: leaving.signal });
  left.catch(() => undefined);
  await waits;
  expect(await running(guest)).toBe('svc_worker_llm_requests_running 1');
  leaving.abort();
  await expect.poll(() => running(guest)).toBe('svc_worker_llm_requests_running 0');
});

test('an answer that waits ends when its sandbox is no longer registered', async () => {
  const { rates, waits } = owing();
  const guest = await lab.start('openai', {}, { rates });
  lab.script({ text: LONG });
  const { statusCode, body } = await guest.ask(CHAT, { body: { messages } });
  expect(statusCode).toBe(200);
  const read = body.bytes();
  read.catch(() => undefined);
  await waits;
  guest.unregister();
  await expect(read).rejects.toThrow();
  await expect.poll(() => running(guest)).toBe('svc_worker_llm_requests_running 0');
});
