import { expect, test } from 'vitest';
import { type SeenRequest, scriptedFetch, streamOf } from '../../test/scripted-fetch.ts';
import { SvcClient } from '../client.ts';
import type { ExecStreamEvent } from './exec-stream.ts';

const EXIT = 'event: exit\ndata: {"exit_code":3,"duration_ms":12,"truncated":false}\n\n';

function streaming(body: ReadableStream) {
  let seen: SeenRequest | undefined;
  const { fetch } = scriptedFetch((request) => {
    seen = request;
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  });
  const client = new SvcClient({ baseUrl: 'https://svc.test', fetch });
  return { events: client.sandboxes.execStream('vm_1', 'make'), request: () => seen };
}

async function collect(events: AsyncIterable<ExecStreamEvent>): Promise<ExecStreamEvent[]> {
  const all: ExecStreamEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

test('yields output in order and the exit last, however the bytes are split', async () => {
  const text = `event: stdout\ndata: {"data":"grüß"}\n\n: ping\n\nevent: stderr\ndata: {"data":"oh\\n"}\n\n${EXIT}`;
  const bytes = new TextEncoder().encode(text);
  const pieces = Array.from(bytes, (byte) => Uint8Array.of(byte));
  const { events, request } = streaming(streamOf(pieces));
  expect(await collect(events)).toEqual([
    { type: 'stdout', data: 'grüß' },
    { type: 'stderr', data: 'oh\n' },
    { type: 'exit', exit_code: 3, duration_ms: 12, truncated: false },
  ]);
  expect(request()?.headers.get('accept')).toBe('text/event-stream');
});

test('throws the error with which the service ends the stream', async () => {
  const { events } = streaming(
    streamOf(['event: error\ndata: {"code":"sandbox_not_running","message":"It ended."}\n\n']),
  );
  await expect(collect(events)).rejects.toMatchObject({
    code: 'sandbox_not_running',
    detail: 'It ended.',
  });
});

test('throws when the stream ends without an exit', async () => {
  const { events } = streaming(streamOf(['event: stdout\ndata: {"data":"a"}\n\n']));
  await expect(collect(events)).rejects.toMatchObject({ code: 'stream_ended' });
});

test('ends the request when the loop is left', async () => {
  const { events, request } = streaming(streamOf(['event: stdout\ndata: {"data":"a"}\n\n'], false));
  for await (const event of events) {
    expect(event).toEqual({ type: 'stdout', data: 'a' });
    break;
  }
  expect(request()?.signal.aborted).toBe(true);
});
