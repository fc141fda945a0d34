import type { FetchLike } from '../src/transport/fetch.ts';

/** A request that the scripted fetch received. */
export interface SeenRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  readonly body: unknown;
  readonly signal: AbortSignal;
}

/** A scripted answer: a response, a failed connection, or a function of the request. */
export type Answer = Response | Error | ((request: SeenRequest) => Response | Promise<Response>);

/** A fetch for tests that returns the answers in turn, repeats the last one, and records the requests. */
export function scriptedFetch(...answers: readonly Answer[]): {
  fetch: FetchLike;
  seen: SeenRequest[];
} {
  const seen: SeenRequest[] = [];
  const fetch: FetchLike = async (url, init) => {
    const request: SeenRequest = {
      method: init.method ?? 'GET',
      url: new URL(url),
      headers: new Headers(init.headers),
      body: init.body,
      signal: init.signal ?? new AbortController().signal,
    };
    seen.push(request);
    const answer = answers[Math.min(seen.length, answers.length) - 1];
    if (answer === undefined) throw new Error('no answer was scripted');
    if (answer instanceof Error) throw answer;
    return answer instanceof Response ? answer.clone() : answer(request);
  };
  return { fetch, seen };
}

/** A JSON response. */
export function json(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): Response {
  return Response.json(body, { status, headers: { 'x-request-id': 'req-1', ...headers } });
}

/** A body of the given pieces, left open when `end` is false. */
export function streamOf(pieces: readonly (string | Uint8Array)[], end = true): ReadableStream {
  const encoder = new TextEncoder();
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) {
        controller.enqueue(typeof piece === 'string' ? encoder.encode(piece) : piece);
      }
      if (end) controller.close();
    },
  });
}
