import { LIMITS } from '@svc/contract';
import { describe, expect, it } from 'vitest';
import { STANDARD } from '../../test/memory-host.ts';
import { useSessionLab } from '../../test/session-lab.ts';

const PNG = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(5_000, 7)]);
const lab = useSessionLab({ images: [STANDARD, { ...STANDARD, template: 'cua' }] });

const shot = (id: string) => ({ type: 'tool_call', name: 'screenshot', arguments: {}, id });
const result = (id: string) => ({ type: 'tool_result', id, content: '', is_error: false });
const calls = () =>
  lab()
    .guest.all('client')
    .map(({ frame }) => frame);

/** A session with a desktop, and a client that may control it. */
async function withDesktop() {
  const { session } = await lab().harness.startSession({}, { template: 'cua' });
  return { session, client: await lab().attach(session, { controlsDesktop: true }) };
}

describe('a client’s tool_call', () => {
  it('is answered with a result, and then with the picture to all who may see it', async () => {
    const { session, client } = await withDesktop();
    const viewer = await lab().attach(session, { controlsDesktop: true });
    const other = await lab().attach(session);
    lab().guest.onClient = () => {
      lab().guest.picture(result('s'), PNG);
      lab().guest.frame({ type: 'text_delta', data: 'next' });
    };
    client.send(shot('s'));
    for (const socket of [client, viewer, other]) {
      await socket.next(({ type }) => type === 'text_delta');
      expect(socket.types).toEqual(['ready', 'tool_result', 'text_delta']);
    }
    expect(client.pictures).toEqual([{ data: PNG, after: 2 }]);
    expect(viewer.pictures).toEqual([{ data: PNG, after: 2 }]);
    expect(other.pictures).toEqual([]);
    const late = await lab().attach(session, { controlsDesktop: true, afterSeq: 0 });
    await late.next(({ type }) => type === 'text_delta');
    expect(late.pictures).toEqual([]);
  });

  it.each([
    ['without the claim', 'cua', false],
    ['in a template without a desktop', 'standard', true],
  ])('%s is refused, and does not reach the guest', async (_what, template, controlsDesktop) => {
    const { session } = await lab().harness.startSession({}, { template });
    const client = await lab().attach(session, { controlsDesktop });
    client.send(shot('s'));
    const error = await client.next(({ type }) => type === 'error');
    expect(error).toMatchObject({ code: 'tool_not_available', id: 's' });
    client.send({ type: 'task', prompt: 'go' });
    await client.next(({ type }) => type === 'task_completed');
    expect(calls().map(({ type }) => type)).toEqual(['task']);
  });

  it('beyond the rate of its tenant is refused, for all its sessions', async () => {
    const { client } = await withDesktop();
    for (let index = 0; index < 60; index += 1) client.send(shot(`s${index}`));
    await client.next(({ type, code }) => type === 'error' && code === 'frame_rate');
    await lab().addGuest();
    const { client: another } = await withDesktop();
    for (let index = 0; index < 60; index += 1) another.send(shot(`t${index}`));
    await another.next(({ type, code }) => type === 'error' && code === 'frame_rate');
  });
});

describe('a guest that lies about pictures', () => {
  it.each([
    ['sends something else as a picture', result('s'), Buffer.from('<script>')],
    ['sends a picture with another frame', { type: 'text_delta', data: 'x' }, PNG],
    [
      'sends one that is too large',
      result('s'),
      Buffer.concat([PNG, Buffer.alloc(LIMITS.screenshotBytes)]),
    ],
  ])('and %s shows none', async (_what, frame, picture) => {
    const { client } = await withDesktop();
    lab().guest.picture(frame, picture);
    lab().guest.turn('conversation', 'after');
    await client.next(({ type }) => type === 'task_completed');
    expect(client.pictures).toEqual([]);
  });
});
