import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { speaksTls } from './tls-handshakes.ts';

/** The end of a request's head. A body may have it too. */
const HEAD_END = '\r\n\r\n';
/** Fewer would slow down uploads of text that has many empty lines. */
const HEADS_PER_TURN = 16;

/**
 * Bounds the requests that a connection can begin in one turn of the event loop to 16. Node parses all that it has read at
 * once, more than two thousand requests of 27 bytes, and does not stop when their connection is destroyed; meanwhile no timer
 * runs. What waits is bounded by a read, as the connection is not read on. Call it after the server has its own listeners.
 */
export function boundPipelining(server: Server): void {
  server.on(speaksTls(server) ? 'secureConnection' : 'connection', readInParts);
}

function readInParts(socket: Socket): void {
  const push = socket.push.bind(socket);
  const read = socket._read.bind(socket);
  /** What has been read and not been parsed; null is the end. */
  const waiting: (Buffer | null)[] = [];
  let left = HEADS_PER_TURN;
  let isAwaitingTurn = false;
  const nextTurn = () => {
    if (isAwaitingTurn) return;
    isAwaitingTurn = true;
    setImmediate(() => {
      isAwaitingTurn = false;
      left = HEADS_PER_TURN;
      pushParts();
    });
  };
  const pushParts = (): boolean => {
    let wantsMore = true;
    while (left > 0 && !isHeld(socket)) {
      const chunk = waiting.shift();
      if (chunk === undefined) return wantsMore;
      const part = partOf(chunk, left);
      left -= part.heads;
      if (chunk !== null && part.end < chunk.length) waiting.unshift(chunk.subarray(part.end));
      wantsMore = push(chunk === null ? null : chunk.subarray(0, part.end));
      nextTurn();
    }
    return wantsMore && waiting.length === 0;
  };
  socket.push = (chunk: Buffer | null) => {
    waiting.push(chunk);
    return waiting.length === 1 && pushParts();
  };
  socket._read = (size) => {
    if (waiting.length === 0) read(size);
  };
  socket.on('resume', nextTurn);
  // Otherwise Node's parser takes the bytes before they reach the socket.
  socket.on('data', ignore).off('data', ignore);
}

/** Whether the socket takes nothing for now; it emits 'resume' when it does again. */
function isHeld(socket: Socket): boolean {
  return socket.destroyed || (socket.isPaused() && socket.listenerCount('readable') === 0);
}

/** The first part of what was read, with so many heads at most. A head may also have begun in what was read before. */
function partOf(chunk: Buffer | null, most: number): { end: number; heads: number } {
  if (chunk === null) return { end: 0, heads: 1 };
  let end = 0;
  for (let heads = 1; heads <= most; heads += 1) {
    const at = chunk.indexOf(HEAD_END, end);
    if (at < 0) return { end: chunk.length, heads };
    end = at + HEAD_END.length;
  }
  return { end, heads: most };
}

function ignore(): void {
  // Nothing: it only listens.
}
