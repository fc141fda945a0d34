// Runs in a sandbox instead of its agent runtime. Sends frames as fast as it can, over the connection to the worker or,
// for comparison, directly over a WebSocket.
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { WebSocketServer } from 'ws';

const PORT = 7100;
/** A frame of 200 bytes, including its sequence number and time. */
const DATA = 'x'.repeat(110);
const BARE_FRAME = JSON.stringify({ type: 'text_delta', data: 'x'.repeat(167) });

const [, , mode, wanted] = process.argv;
const count = Number(wanted);

if (mode === 'link') createServer((connection) => void serveConnection(connection)).listen(PORT);
else new WebSocketServer({ port: PORT }).on('connection', (socket) => socket.on('message', send));

/** Sends one round of frames for every client frame that the worker forwards. */
async function serveConnection(connection: Socket): Promise<void> {
  let n = 0;
  connection.on('error', () => connection.destroy());
  for await (const text of createInterface({ input: connection })) {
    const message = JSON.parse(text);
    if (message.type === 'attach') {
      n = message.after;
      connection.write('{"type":"attached","c":0}\n');
    }
    if (message.type !== 'client') continue;
    connection.write(`{"type":"received","c":${message.c}}\n`);
    for (let sent = 0; sent < count; sent += 1) {
      n += 1;
      const frame = `{"type":"frame","n":${n},"frame":{"type":"text_delta","data":"${DATA}"}}\n`;
      if (!connection.write(frame)) await once(connection, 'drain');
    }
  }
}

async function send(this: import('ws').WebSocket): Promise<void> {
  for (let sent = 0; sent < count; sent += 1) {
    const written = Promise.withResolvers<void>();
    this.send(BARE_FRAME, () => written.resolve());
    if (this.bufferedAmount > 16_384) await written.promise;
  }
}
