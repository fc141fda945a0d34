import type { Agent } from 'undici';

/** What the client needs of `fetch`: the global one fits, and so does a stand-in. */
export type FetchLike = (url: string, init: RequestInit) => Promise<Response>;

/** A fetch and the end of its connections. */
export interface ClosableFetch {
  readonly fetch: FetchLike;
  close(): Promise<void>;
}

/**
 * The HTTP client used when none is given: undici's fetch over an agent that trusts `ca` and has no
 * timeouts of its own, since a command may be silent for longer than any fixed limit. Each call
 * brings its deadline. Loaded at the first call.
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
    // undici declares the web's types of fetch once more, as types of its own.
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
