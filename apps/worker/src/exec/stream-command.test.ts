import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, it } from 'vitest';
import { CoreHarness } from '../../test/core-harness.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import { placement } from '../../test/placement.ts';
import { RateClock } from '../../test/rate-clock.ts';
import { EventStream } from './event-stream.ts';
import { outputRates } from './output-rates.ts';
import { streamCommand } from './stream-command.ts';

const PER_SECOND = 64 * 1024;
const NEVER = new AbortController().signal;
/** Zero bytes are six characters each in JSON. */
const ZEROS = { command: 'head -c 500000 /dev/zero' };
const SENT = 6 * 500_000;

let core: CoreHarness;

beforeEach(() => {
  core = new CoreHarness(new MemoryHost());
});

async function run(
  tenantId: string,
  rates: ReturnType<typeof outputRates>,
  request: { command: string; timeout_seconds?: number } = ZEROS,
): Promise<string> {
  const sandbox = await core.creator.create(placement({ tenant_id: tenantId }), NEVER);
  const events = new EventStream();
  const done = streamCommand(sandbox, request, { events, rates }, NEVER);
  const all = await text(events.body);
  await done;
  return all;
}

describe('the output of commands', () => {
  it('is slowed to the rate of its tenant, as it is sent, over all sandboxes together', async () => {
    const time = new RateClock();
    const rates = outputRates(PER_SECOND, time);
    const texts = await Promise.all(Array.from({ length: 3 }, () => run('usr_a', rates)));
    for (const events of texts) {
      expect(events.length).toBeGreaterThan(SENT);
      expect(events).toContain('event: exit\ndata: {"exit_code":0');
    }
    const least = ((3 * SENT) / PER_SECOND - 2) * 1000;
    // The chunks of commands that waited together may each exceed the rate once, the last ones for nobody.
    expect(time.waited).toBeGreaterThan(least - 10_000);
    expect(time.waited).toBeLessThan(least + 60_000);
  });

  it('of another tenant does not wait, nor does a burst', async () => {
    const time = new RateClock();
    const rates = outputRates(PER_SECOND, time);
    rates.spend('usr_a', 1000 * PER_SECOND);
    await run('usr_b', rates, { command: 'head -c 20000 /dev/zero' });
    expect(time.waited).toBe(0);
  });

  it('that waits when the time of its command is up is dropped, and the exit comes last', async () => {
    // On a slow machine the time may be up before the command has written anything.
    for (let timeout_seconds = 1, isWaiting = false; !isWaiting; timeout_seconds *= 2) {
      const rates = outputRates(1, {
        now: () => 0,
        sleep: (_ms, signal) => {
          isWaiting = true;
          return new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
        },
      });
      rates.spend('usr_a', 1000);
      const events = await run('usr_a', rates, {
        command: 'echo late; sleep 600',
        timeout_seconds,
      });
      expect(events).not.toContain('late');
      expect(events).toMatch(/event: exit\ndata: \{"exit_code":124,.*"timed_out":true.*\}\n\n$/);
    }
  });
});
