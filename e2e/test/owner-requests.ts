import type { RawAnswer, RawRequest } from './raw-http.ts';
import { shared } from './shared-service.ts';
import { type TestSandbox, useSandbox } from './test-sandbox.ts';

/** A sandbox and raw requests by its owner. */
export interface OwnerRequests {
  readonly sandbox: () => TestSandbox;
  /** Sends a request with the owner's API key. `{id}` in the target stands for the sandbox's id. */
  readonly send: (request: RawRequest) => Promise<RawAnswer>;
  readonly post: (
    target: string,
    body: unknown,
    headers?: Record<string, string>,
  ) => Promise<RawAnswer>;
}

/** Creates a sandbox for all tests of a file, and functions that send its owner's requests. */
export function useOwnerRequests(): OwnerRequests {
  const sandbox = useSandbox();
  const send = (request: RawRequest) =>
    shared.raw({
      apiKey: sandbox().account.apiKey,
      ...request,
      target: request.target.replace('{id}', sandbox().id),
    });
  return {
    sandbox,
    send,
    post: (target, body, headers = {}) => send({ method: 'POST', target, body, headers }),
  };
}
