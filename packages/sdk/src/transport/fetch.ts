import type { Agent } from 'undici';

/** The part of `fetch` that the client uses. The global one conforms to it, as does a test double. */
export type FetchLike = (url: string, init: RequestInit) => Promise<Response>;

/** A fetch, and a function that closes its connections. */
export interface ClosableFetch {
  readonly fetch: FetchLike;
  close(): Promise<void>;
}

/**
 * The default HTTP client: undici's fetch with an agent that trusts `ca`. The agent has no timeouts, because a command
 * may be silent for longer than any fixed limit; each call has its own deadline. Loaded at the first call.
 */
export function defaultFetch(ca: string | Uint8Array | undefined): ClosableFetch {
  let loading: Promise<{ agent: Agent; fetch: FetchLike }> | undefined;
  const load = async () => {
    const undici = await import('undici');
    const agent = new undici.Agent({
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : Buffer.from(ca) },
    });
    // undici declares its own versions of the standard fetch types.
    const fetch = undici.fetch as unknown as (url: string, init: object) => Promise<Response>;
    return {
      agent,
      fetch: (url: string, init: RequestInit) => fetch(url, { ...init, dispatcher: agent }),
    };
  };
  return {
    fetch: async (url, init) => {
      loading ??= load();
      return (await loading).fetch(url, init);
    },
    close: async () => {
      if (loading !== undefined) await (await loading).agent.close();
    },
  };
}
