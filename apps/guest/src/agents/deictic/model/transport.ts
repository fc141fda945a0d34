/** The failures of a connection to a model, as opposed to failures reported by the model. */
export type TransportProblem = 'unreachable' | 'silent' | 'cut' | 'too_large';

/** A request without a complete response. Has no `cause`, since libraries classify and wrap errors by it. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  readonly problem: TransportProblem;

  constructor(problem: TransportProblem, message: string) {
    super(message);
    this.problem = problem;
  }
}

/** Far more than the longest answer of any model, including the event around each token. */
const MAX_ANSWER_BYTES = 128 * 1024 * 1024;

/**
 * A `fetch` for model calls. Fails with a {@link TransportError} when the endpoint cannot be reached, is silent for
 * `silenceMs`, or breaks off. Time in which the response is not read does not count. Follows no redirects.
 */
export function createTransport(silenceMs: number): typeof fetch {
  return async (input, init) => {
    const caller = init?.signal ?? undefined;
    const silence = new AbortController();
    const signals = caller === undefined ? [silence.signal] : [caller, silence.signal];
    const watch = () => setTimeout(() => silence.abort(), silenceMs);
    const describe = (problem: 'unreachable' | 'cut', error: unknown): unknown => {
      if (caller?.aborted) return caller.reason;
      if (silence.signal.aborted) {
        return new TransportError(
          'silent',
          `no byte arrived for ${Math.round(silenceMs / 1000)} s`,
        );
      }
      return new TransportError(problem, reasonOf(error));
    };
    const timer = watch();
    try {
      const signal = AbortSignal.any(signals);
      const response = await fetch(input, { ...init, signal, redirect: 'manual' });
      if (response.body === null) return response;
      return new Response(watched(response.body, watch, describe), response);
    } catch (error) {
      throw describe('unreachable', error);
    } finally {
      clearTimeout(timer);
    }
  };
}

function watched(
  body: ReadableStream<Uint8Array>,
  watch: () => NodeJS.Timeout,
  describe: (problem: 'unreachable' | 'cut', error: unknown) => unknown,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let bytes = 0;
  return new ReadableStream(
    {
      async pull(controller) {
        const timer = watch();
        try {
          const { done, value } = await reader.read();
          if (done) return controller.close();
          bytes += value.byteLength;
          if (bytes > MAX_ANSWER_BYTES) {
            throw new TransportError('too_large', 'the answer does not end');
          }
          controller.enqueue(value);
        } catch (error) {
          await reader.cancel().catch(() => undefined);
          const known = error instanceof TransportError;
          throw known ? error : describe(bytes === 0 ? 'unreachable' : 'cut', error);
        } finally {
          clearTimeout(timer);
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

/** For a failed connection, Node puts the reason into the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'the connection failed';
  return error.cause instanceof Error && error.cause.message !== ''
    ? error.cause.message
    : error.message;
}
