import type { IncomingMessage } from 'node:http';

export const MAX_BODY_BYTES = 32 * 1024 * 1024;

/** Reads the body of a request. Returns undefined if it exceeds {@link MAX_BODY_BYTES}; rejects if the client disconnects. */
export async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += (chunk as Buffer).length;
    if (size > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

/** Parses a body as JSON, or returns its text if it is not JSON; undefined if it is empty. */
export function parseBody(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  const text = body.toString();
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
