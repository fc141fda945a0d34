// Runs in a sandbox, in the place of its agent runtime: sends frames as fast as it can, on the line to the worker or,
// for comparison, straight to a WebSocket.
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { WebSocketServer } from 'ws';

const PORT = 7100;
/** With number and time, a frame of 200 bytes. */
const DATA = 'x'.repeat(110);
const BARE_FRAME = JSON.stringify({ type: 'text_delta', data: 'x'.repeat(167) });

const [, , mode, wanted] = process.argv;
const count = Number(wanted);

if (mode === 'link') createServer((line) => void serveLine(line)).listen(PORT);
else new WebSocketServer({ port: PORT }).on('connection', (socket) => socket.on('message', send));

/** Every client frame that the worker hands down asks for one round. */
async function serveLine(line: Socket): Promise<void> {
  let n = 0;
  line.on('error', () => line.destroy());
  for await (const text of createInterface({ input: line })) {
    const message = JSON.parse(text);
    if (message.type === 'attach') {
      n = message.after;
      line.write('{"type":"attached","c":0}\n');
    }
    if (message.type !== 'client') continue;
    line.write(`{"type":"received","c":${message.c}}\n`);
    for (let sent = 0; sent < count; sent += 1) {
      n += 1;
      const frame = `{"type":"frame","n":${n},"frame":{"type":"text_delta","data":"${DATA}"}}\n`;
      if (!line.write(frame)) await once(line, 'drain');
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
