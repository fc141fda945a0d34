import { once } from 'node:events';
import WebSocket from 'ws';
import { inTurns } from '../measure/in-turns.ts';
import { type Row, ratioResult } from '../measure/row.ts';
import { BenchSessions } from '../sessions/bench-sessions.ts';
import { ROUND_FRAMES, startFrameSource } from '../sessions/guest-frames.ts';

const AT_LEAST = 0.4;

/** Frames from a guest to a client through worker and runtime host, compared with a WebSocket directly to the guest. */
export const sessionFrames: Row = {
  name: 'session-frames',
  pool: 2,
  async run({ service, models, runs, progress }) {
    const sessions = await BenchSessions.open(service, models.server.url);
    const session = await sessions.create();
    const plain = await service.createSandbox();
    try {
      const { vm_id } = await service.client.sessions.get(session.chat_session_id);
      if (vm_id === undefined) throw new Error('the session has no sandbox');
      const client = await sessions.attach(session);
      await startFrameSource(service, vm_id, 'link');
      await startFrameSource(service, plain.id, 'websocket');
      const bare = new WebSocket(`ws://${plain.host}:7100`, { perMessageDeflate: false });
      await once(bare, 'open');
      const samples = await inTurns({
        runs,
        ours: () => client.framesPerSecond(ROUND_FRAMES),
        comparison: () => bareFramesPerSecond(bare),
        onTurn: (done) => progress(`${done}/${runs}`),
      });
      bare.terminate();
      await client.close();
      return [
        ratioResult({
          name: this.name,
          what: 'frames of 200 bytes, guest to client',
          against: 'bare WebSocket from the guest, one hop',
          unit: 'frames/s',
          ...samples,
          atLeast: AT_LEAST,
        }),
      ];
    } finally {
      await sessions.delete(session);
      await service.client.sandboxes.delete(plain.id);
    }
  },
};

async function bareFramesPerSecond(socket: WebSocket): Promise<number> {
  const done = Promise.withResolvers<number>();
  let seen = 0;
  let first = 0;
  const onMessage = () => {
    seen += 1;
    if (seen === 1) first = performance.now();
    if (seen === ROUND_FRAMES) done.resolve(((seen - 1) * 1000) / (performance.now() - first));
  };
  socket.on('message', onMessage);
  socket.send('go');
  try {
    return await done.promise;
  } finally {
    socket.off('message', onMessage);
  }
}
