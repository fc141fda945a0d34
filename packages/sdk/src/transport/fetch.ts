/** The part of `fetch` that the client uses. The global one conforms to it, as does a test double. */
export type FetchLike = (url: string, init: RequestInit) => Promise<Response>;

/** A fetch, and a function that closes its connections. */
export interface ClosableFetch {
  readonly fetch: FetchLike;
  close(): Promise<void>;
}

/** The default HTTP client, which trusts `ca`. Loaded at the first call. */
export function defaultFetch(ca: string | Uint8Array | undefined): ClosableFetch {
  let loading: Promise<ClosableFetch> | undefined;
  return {
    async fetch(url, init) {
      loading ??= import('./undici-fetch.ts').then(({ openUndiciFetch }) => openUndiciFetch(ca));
      return (await loading).fetch(url, init);
    },
    async close() {
      if (loading !== undefined) await (await loading).close();
    },
  };
}
