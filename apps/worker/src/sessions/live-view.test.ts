import { AGENT_LINK_LINE_BYTES, LIMITS } from '@svc/contract';
import { MicrovmError } from '@svc/microvm';
import { describe, expect, it } from 'vitest';
import { drawn, tile, update, wholeDisplay } from '../../test/display.ts';
import { STANDARD } from '../../test/memory-host.ts';
import type { ScriptedGuest } from '../../test/scripted-guest.ts';
import { useSessionLab } from '../../test/session-lab.ts';
import type { SessionSocket } from '../../test/session-socket.ts';

const IMAGES = [STANDARD, { ...STANDARD, template: 'cua' }];
const lab = useSessionLab({ images: IMAGES });

const watch = (input: object = {}) => ({
  type: 'tool_call',
  id: 'w',
  name: 'watch',
  arguments: input,
});
const UNWATCH = { type: 'tool_call', id: 'u', name: 'unwatch', arguments: {} };

/** A session with a desktop. */
async function withDesktop() {
  const { session, vmId } = await lab().harness.startSession({}, { template: 'cua' });
  const attach = () => lab().attach(session, { controlsDesktop: true });
  return { session, vmId, client: await attach(), attach };
}

/** Lets a guest answer each request for pictures: the whole display, then tile after tile, each with the next content. */
function animate(guest: ScriptedGuest): void {
  let content = 0;
  guest.onCapture = ({ id, whole }) => {
    content = (content + 1) % 256;
    guest.captured(id, update(whole ? wholeDisplay(content) : [tile(content % 10, 0, content)]));
  };
}

/** Lets a client confirm each update. */
function confirm(client: SessionSocket): void {
  client.ws.on('message', (_data, isBinary) => {
    const number = client.updates.at(-1)?.number;
    if (isBinary && number !== undefined) client.send({ type: 'view_ack', number });
  });
}

const hasUpdates = (client: SessionSocket, count: number) =>
  expect.poll(() => client.updates.length, { timeout: 20_000 }).toBeGreaterThanOrEqual(count);

async function expectStillServed(client: SessionSocket): Promise<void> {
  client.send({ type: 'task', prompt: 'well?' });
  await client.next(({ type }) => type === 'task_completed');
}

describe('a client that watches a desktop', () => {
  it('resumes it if it is paused, but not by ending the view', async () => {
    const { harness } = lab();
    const { vmId, client } = await withDesktop();
    const vm = harness.host.vmOf(vmId);
    await harness.json('POST', `/sandboxes/${vmId}/pause`);
    client.send(watch());
    await expect.poll(() => vm.paused).toBe(false);
    await harness.json('POST', `/sandboxes/${vmId}/pause`);
    client.send(UNWATCH);
    await client.next(({ id }) => id === 'u');
    expect(vm).toMatchObject({ paused: true, resumes: 1 });
    vm.faults.resume = new MicrovmError('resume_failed', 'no');
    client.send(watch());
    expect(await client.next(({ type }) => type === 'error')).toMatchObject({
      code: 'busy',
      id: 'w',
    });
    vm.faults.resume = undefined;
  });

  it('gets an answer without a number and then updates, which nobody else gets', async () => {
    const { client, attach } = await withDesktop();
    const other = await attach();
    animate(lab().guest);
    confirm(client);
    client.send(watch({ fps: 5, quality: 30 }));
    await hasUpdates(client, 4);
    expect(client.frames.slice(1)).toEqual([
      {
        type: 'tool_result',
        id: 'w',
        content: 'Updates of the view follow.',
        is_error: false,
        ts: expect.any(String),
      },
    ]);
    expect(client.updates[0]).toMatchObject({ width: 1280, height: 800, isCurrent: true });
    expect(client.updates.map(({ regions }) => regions.length).slice(0, 4)).toEqual([70, 1, 1, 1]);
    expect(lab().guest.all('capture').slice(0, 2)).toEqual([
      { type: 'capture', id: 1, whole: true, quality: 30 },
      { type: 'capture', id: 2, whole: false, quality: 30 },
    ]);
    await expectStillServed(other);
    expect([other.types.includes('tool_result'), other.updates]).toEqual([false, []]);
    expect(client.pictures).toEqual([]);
    const [, bytes] =
      /^svc_worker_view_bytes_total (\d+)$/m.exec(await lab().harness.metrics()) ?? [];
    expect(Number(bytes)).toBeGreaterThan(70_000);
  });

  it('gets none of it again when it attaches later', async () => {
    const { session, client } = await withDesktop();
    animate(lab().guest);
    client.send(watch());
    await hasUpdates(client, 1);
    await expectStillServed(client);
    const late = await lab().attach(session, { controlsDesktop: true, afterSeq: 0 });
    await late.next(({ type }) => type === 'task_completed');
    expect([late.types.includes('tool_result'), late.updates]).toEqual([false, []]);
  });

  it('stops the guest when it leaves, whichever way', async () => {
    const { client, attach } = await withDesktop();
    const { guest } = lab();
    guest.onCapture = ({ id, whole }) => {
      if (whole) guest.captured(id, update(wholeDisplay()));
    };
    const stopped = (times: number) =>
      expect.poll(() => guest.all('capture_stop').length).toBe(times);
    const asked = (times: number) => expect.poll(() => guest.all('capture').length).toBe(times);
    client.send(watch({ fps: 5 }));
    await asked(2);
    client.send(UNWATCH);
    await client.next(({ id }) => id === 'u');
    await stopped(1);
    const gone = await attach();
    gone.send(watch({ fps: 5 }));
    await asked(4);
    gone.ws.terminate();
    await stopped(2);
  });

  it.each([
    { fps: 0 },
    { fps: LIMITS.viewFpsMax + 1 },
    { fps: 1.5 },
    { fps: '3' },
    { quality: LIMITS.viewQualityMin - 1 },
    { quality: LIMITS.viewQualityMax + 1 },
    { region: [0, 0] },
  ])('and asks for %o is told what it may ask for', async (input) => {
    const { client } = await withDesktop();
    client.send(watch(input));
    const answer = await client.next(({ id }) => id === 'w');
    const content = 'fps is a whole number from 1 to 5, and quality one from 20 to 90.';
    expect(answer).toMatchObject({ type: 'tool_result', is_error: true, content });
    expect(lab().guest.all('capture')).toEqual([]);
  });

  it.each([
    ['without the claim', 'cua', false],
    ['in a template without a desktop', 'standard', true],
  ])('%s is refused, and the guest not asked', async (_what, template, controlsDesktop) => {
    const { session } = await lab().harness.startSession({}, { template });
    const client = await lab().attach(session, { controlsDesktop });
    client.send(watch());
    const error = await client.next(({ type }) => type === 'error');
    expect(error).toMatchObject({ code: 'tool_not_available', id: 'w' });
    client.send({ type: 'view_ack', number: 1 });
    await expectStillServed(client);
    expect(lab().guest.all('capture')).toEqual([]);
    expect(client.updates).toEqual([]);
  });

  it('and begins again and again is refused by the rate of its tenant', async () => {
    const { client } = await withDesktop();
    for (let index = 0; index < 60; index += 1) client.send(watch());
    const error = await client.next(({ type }) => type === 'error');
    expect(error).toMatchObject({ code: 'frame_rate', id: 'w' });
  });

  it('sees the whole display after the link to the guest was lost', async () => {
    const { client } = await withDesktop();
    const { guest } = lab();
    guest.onCapture = ({ id, whole }) => {
      if (whole) guest.captured(id, update(wholeDisplay(1)));
    };
    confirm(client);
    client.send(watch({ fps: 5 }));
    await expect.poll(() => guest.all('capture').length).toBe(2);
    guest.onCapture = ({ id, whole }) => {
      guest.captured(id, update(whole ? wholeDisplay(2) : []));
    };
    guest.cut();
    await expect
      .poll(() => new Set(Object.values(drawn(client.updates))), { timeout: 20_000 })
      .toEqual(new Set([2]));
  });
});

describe('a client that watches and does not read', () => {
  it('is sent a bounded number of bytes, and slows nobody down', async () => {
    const { client: slow, attach } = await withDesktop();
    animate(lab().guest);
    slow.send(watch({ fps: 5 }));
    await hasUpdates(slow, 1);
    slow.ws.pause();
    const quick = await attach();
    confirm(quick);
    quick.send(watch({ fps: 5 }));
    await hasUpdates(quick, 10);
    await expectStillServed(quick);
    slow.ws.resume();
    await slow.next(({ type }) => type === 'task_completed');
    expect(slow.updates).toHaveLength(LIMITS.viewUnacknowledged);
    expect(slow.ws.readyState).toBe(slow.ws.OPEN);
  });

  it('confirms what it has not read in vain', async () => {
    const { client } = await withDesktop();
    const { guest } = lab();
    const large = update(wholeDisplay(1, 60_000));
    guest.onCapture = ({ id }) => guest.captured(id, large);
    client.send(watch({ fps: 5 }));
    await hasUpdates(client, 1);
    client.ws.pause();
    const before = guest.all('capture').length;
    for (let number = 1; number < 500; number += 1) {
      client.send({ type: 'view_ack', number: 0xffff_ffff });
    }
    client.send({ type: 'task', prompt: 'are you there?' });
    await expect.poll(() => guest.all('client').length).toBe(1);
    expect(guest.all('capture').length - before).toBeLessThanOrEqual(1);
    client.ws.resume();
    await client.next(({ type }) => type === 'task_completed');
  });
});

describe('a hostile guest', () => {
  /** A session of another guest, which works. */
  async function neighbour() {
    await lab().addGuest();
    const { session } = await lab().harness.startSession();
    return await lab().attach(session);
  }

  it.each<[string, (guest: ScriptedGuest, id: number) => void]>([
    ['garbage', (guest, id) => guest.captured(id, Buffer.from('<script>'))],
    ['a display that is too large', (guest, id) => guest.captured(id, hugeDisplay())],
    [
      'a flood of updates nobody asked for',
      (guest) => {
        for (let id = 0; id < 2_000; id += 1) guest.captured(id + 1_000, update([tile(0, 0)]));
      },
    ],
    [
      'numbers that are none',
      (guest, id) => {
        for (const wrong of [-1, 0.5, `${id}`, null, [id]]) {
          guest.raw(`${JSON.stringify({ type: 'captured', id: wrong, update: '' })}\n`);
        }
      },
    ],
    [
      'updates that are no text',
      (guest, id) => guest.raw(`${JSON.stringify({ type: 'captured', id, update: {} })}\n`),
    ],
  ])('that sends %s shows nothing, and is still heard', async (_what, send) => {
    const liar = lab().guest;
    const { client } = await withDesktop();
    const other = await neighbour();
    liar.onCapture = ({ id }) => send(liar, id);
    client.send(watch());
    await expect.poll(() => liar.all('capture').length).toBe(1);
    await expectStillServed(client);
    await expectStillServed(other);
    expect(client.updates).toEqual([]);
    expect(liar.connections).toBe(1);
  });

  it('that sends a line without an end is reconnected', async () => {
    const liar = lab().guest;
    const { client } = await withDesktop();
    const other = await neighbour();
    let lies = true;
    liar.onCapture = ({ id }) => {
      if (lies) liar.raw(`{"type":"captured","update":"${'A'.repeat(AGENT_LINK_LINE_BYTES)}`);
      else liar.captured(id, update(wholeDisplay()));
      lies = false;
    };
    client.send(watch());
    await hasUpdates(client, 1);
    expect(liar.connections).toBeGreaterThan(1);
    await expectStillServed(other);
  });
});

/** A display whose tiles have larger pictures than they may. */
function hugeDisplay(): Uint8Array {
  return update(wholeDisplay(1, LIMITS.viewTileBytes + 1));
}

describe('the views of a tenant', () => {
  const limited = useSessionLab({ images: IMAGES, viewBytesPerSecond: 50_000 });

  it('have a rate together, beyond which they are shown later', async () => {
    const { guest, harness } = limited();
    const { session } = await harness.startSession({}, { template: 'cua' });
    const clients = await Promise.all(
      Array.from({ length: 8 }, () => limited().attach(session, { controlsDesktop: true })),
    );
    guest.onCapture = ({ id }) => guest.captured(id, update(wholeDisplay(1)));
    const bytes = () => clients.flatMap(({ updates }) => updates).length * 71_136;
    const start = performance.now();
    for (const client of clients) client.send(watch());
    await expect.poll(bytes, { timeout: 20_000 }).toBeGreaterThan(400_000);
    const seconds = (performance.now() - start) / 1_000;
    expect(bytes()).toBeLessThanOrEqual(50_000 * (4 + seconds) + 71_136);
  });
});
