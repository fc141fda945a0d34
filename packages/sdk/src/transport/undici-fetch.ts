import { Agent, fetch as undiciFetch } from 'undici';

/**
 * undici's fetch with an agent that trusts `ca`, and a function that closes its connections. The agent has no timeouts, because
 * a command may be silent for longer than any fixed limit; each call has its own deadline.
 */
export function openUndiciFetch(ca: string | Uint8Array | undefined) {
  const dispatcher = new Agent({
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : Buffer.from(ca) },
  });
  // undici declares its own versions of the standard fetch types.
  const fetch = undiciFetch as unknown as (url: string, init: object) => Promise<Response>;
  return {
    fetch: (url: string, init: RequestInit) => fetch(url, { ...init, dispatcher }),
    close: () => dispatcher.close(),
  };
}
