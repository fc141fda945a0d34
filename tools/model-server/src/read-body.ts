import type { IncomingMessage } from 'node:http';

export const MAX_BODY_BYTES = 32 * 1024 * 1024;

/** The whole body of a request; undefined when it is larger than {@link MAX_BODY_BYTES}. Rejects when it breaks off. */
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

/** A body as JSON where it is JSON, else as text; undefined when it is empty. */
export function parseBody(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  const text = body.toString();
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
