import { describe, expect, it } from 'vitest';
import { useSessionLab } from '../../test/session-lab.ts';
import { SessionSocket } from '../../test/session-socket.ts';

const lab = useSessionLab({ agentTimeouts: { slowConsumerMs: 3_000 } });

function sendText(count: number, from = 0, size = 20): void {
  for (let index = from; index < from + count; index += 1) {
    lab().guest.frame({ type: 'text_delta', data: `${index} ${'x'.repeat(size)}` });
  }
}

const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);

describe('clients of a session', () => {
  it('all get every frame from their attachment on, and none from before it', async () => {
    const { harness } = lab();
    const { session, vmId, client: first } = await lab().startAttached();
    sendText(10);
    await first.next(({ seq }) => seq === 10);
    const second = await lab().attach(session);
    expect(second.frames[0]).toMatchObject({ type: 'ready', last_seq: 10 });
    expect(await harness.json('GET', `/sandboxes/${vmId}`)).toMatchObject({
      body: { active_connections: 2 },
    });
    sendText(10, 10);
    for (const client of [first, second]) await client.next(({ seq }) => seq === 20);
    expect(first.seqs).toEqual(range(1, 20));
    expect(second.seqs).toEqual(range(11, 20));
    await first.close();
    await expect
      .poll(() => harness.json('GET', `/sandboxes/${vmId}`))
      .toMatchObject({
        body: { active_connections: 1 },
      });
  });

  it.each([
    [0, 1],
    [7, 8],
    [19, 20],
    [20, 21],
    [900, 21],
  ])('that reattach after frame %i continue with frame %i', async (afterSeq, next) => {
    const { session } = await lab().harness.startSession();
    sendText(20);
    await lab().guest.drained();
    const client = await lab().attach(session, { afterSeq });
    sendText(1, 20);
    await client.next(({ seq }) => seq === 21);
    expect(client.seqs).toEqual(range(next, 21));
  });

  it('miss no frame and get none twice while they reconnect under load', async () => {
    const { session } = await lab().harness.startSession();
    const total = 6_000;
    let said = 0;
    const talk = setInterval(() => {
      if (said < total) sendText(200, said);
      said += 200;
    }, 5);
    try {
      await Promise.all(
        range(1, 6).map(async (which) => {
          const seen: number[] = [];
          while ((seen.at(-1) ?? 0) < total) {
            const client = await lab().attach(session, { afterSeq: seen.at(-1) ?? 0 });
            const enough = Math.min(total, (seen.at(-1) ?? 0) + which * 700);
            await client.next(({ seq }) => (seq ?? 0) >= enough);
            client.ws.terminate();
            await client.closed;
            seen.push(...client.seqs);
          }
          expect(seen.slice(0, total)).toEqual(range(1, total));
        }),
      );
    } finally {
      clearInterval(talk);
    }
  });

  it('get the same frames live and in replay', async () => {
    const { session, client: live } = await lab().startAttached();
    lab().guest.turn('talked', 'é 😀 \u2028 "quoted"');
    await live.next(({ type }) => type === 'task_completed');
    const later = await lab().attach(session, { afterSeq: 0 });
    await later.next(({ type }) => type === 'task_completed');
    expect(later.frames.slice(1)).toEqual(live.frames.slice(1));
  });

  it('that do not read are disconnected, and the others get every frame', async () => {
    const { session, client: slow } = await lab().startAttached();
    const good = await lab().attach(session);
    slow.ws.pause();
    const total = 400;
    sendText(total, 0, 50_000);
    await good.next(({ seq }) => seq === total);
    expect(good.seqs).toEqual(range(1, total));
    slow.ws.resume();
    const { code } = await slow.closed;
    expect([1013, 1006]).toContain(code);
    expect(slow.seqs).toEqual(range(1, slow.seqs.length));
    expect(slow.seqs.length).toBeLessThan(total);
  });

  it('that do not read a replay are disconnected', async () => {
    const { harness } = lab();
    const { session } = await harness.startSession();
    sendText(200, 0, 50_000);
    await lab().guest.drained();
    const slow = await lab().attach(session);
    slow.ws.pause();
    const other = await lab().attach(session, { afterSeq: 0, pauses: true });
    await expect.poll(() => harness.host.live).toHaveLength(1);
    await expect
      .poll(() => harness.json('GET', '/sandboxes'))
      .toMatchObject({ body: { sandboxes: [{ active_connections: 1 }] } });
    slow.ws.terminate();
    other.ws.resume();
    await other.closed;
    expect(other.seqs).toEqual(range(1, other.seqs.length));
  });

  it('beyond 64 per session are refused with 429', async () => {
    const { session } = await lab().harness.startSession();
    await Promise.all(range(1, 64).map(() => lab().attach(session)));
    expect(await SessionSocket.refusal(lab().harness, session)).toMatchObject({ status: 429 });
  });

  it('get the newest frames when the history is full', async () => {
    const { session } = await lab().harness.startSession();
    const total = 450;
    for (let index = 0; index < total; index += 50) {
      sendText(50, index, 50_000);
      await lab().guest.drained();
    }
    const client = await lab().attach(session, { afterSeq: 0 });
    await client.next(({ seq }) => seq === total);
    const [first = 0] = client.seqs;
    expect(first).toBeGreaterThan(1);
    expect(client.seqs).toEqual(range(first, total));
  });
});
