import type { RawAnswer, RawRequest } from '../support/raw-http.ts';
import { shared } from '../support/shared-service.ts';
import { type TestSandbox, useSandbox } from '../support/use-sandbox.ts';

/** A sandbox, and requests of its owner. */
export interface Sender {
  readonly sandbox: () => TestSandbox;
  /** Sends a request with the account's key; `{id}` in the target is its sandbox. */
  readonly send: (request: RawRequest) => Promise<RawAnswer>;
  readonly post: (
    target: string,
    body: unknown,
    headers?: Record<string, string>,
  ) => Promise<RawAnswer>;
}

/** Has a sandbox there for all tests of the file, and ways to send its owner's requests. */
export function useSender(): Sender {
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
