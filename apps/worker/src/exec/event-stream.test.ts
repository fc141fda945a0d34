import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { EventStream } from './event-stream.ts';

describe('EventStream', () => {
  it('holds the producer back until the reader reads', async () => {
    const events = new EventStream();
    let sent = 0;
    const producer = (async () => {
      for (; sent < 50; sent += 1) await events.send('stdout', { data: 'x'.repeat(100_000) });
      events.end();
    })();
    await expect.poll(() => sent).toBeGreaterThan(0);
    expect(sent).toBeLessThan(20);
    const all = await text(events.body);
    await producer;
    expect(all.match(/event: stdout/g)?.length).toBe(50);
  });

  it('reports a stalled reader', async () => {
    const events = new EventStream({ stallMs: 20 });
    while (!events.stalled.aborted) await events.send('stdout', { data: 'x'.repeat(100_000) });
    expect(events.stalled.reason).toMatchObject({ code: 'request_timeout' });
    events.body.destroy();
  });

  it('releases the producer when the reader disconnects', async () => {
    const events = new EventStream();
    const blocked = events.send('stdout', { data: 'x'.repeat(1_000_000) });
    events.body.destroy();
    await blocked;
    await events.send('stdout', { data: 'more' });
    expect(events.stalled.aborted).toBe(false);
  });
});
