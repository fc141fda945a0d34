import { afterAll, beforeAll, expect, test } from 'vitest';
import { Harness } from '../../../test/harness.ts';

const MIB = 1024 * 1024;
/** More than the buffers of a connection. */
const SENT_CHUNKS = 24;

let harness: Harness;

beforeAll(async () => {
  harness = await Harness.start();
});
afterAll(() => harness?.[Symbol.asyncDispose]());

test('of the large bodies of one worker few are read at a time, and other workers are served', async () => {
  const [greedy, other] = [await harness.addWorker('w1'), await harness.addWorker('w2')];
  const { url } = harness.plane;
  const sent = new Set<number>();
  const aborts = Array.from({ length: 8 }, () => new AbortController());
  const answers = aborts.map(({ signal }, index) => {
    let chunks = 0;
    // Sends a part of a body, and then nothing.
    const body = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        if (chunks < SENT_CHUNKS) controller.enqueue(Buffer.alloc(MIB, ' '));
        else {
          sent.add(index);
          await new Promise(() => undefined);
        }
        chunks += 1;
      },
    });
    const headers = { 'content-type': 'application/json' };
    return greedy.ask(url, 'POST', '/sessions/x/turns', { body, headers, signal });
  });
  const settled = Promise.allSettled(answers);
  try {
    await expect.poll(() => sent.size).toBe(2);
    expect((await other.heartbeat(url)).status).toBe(200);
    expect((await greedy.heartbeat(url)).status).toBe(200);
    const [first, second] = sent;
    expect(sent.size).toBe(2);
    for (const index of [first, second]) aborts[index ?? 0]?.abort();
    await expect.poll(() => sent.size).toBe(4);
  } finally {
    for (const abort of aborts) abort.abort();
    await settled;
  }
});
