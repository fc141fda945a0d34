import type { ExecErrorEvent, ExecExitEvent, ExecOutputEvent } from '@svc/contract';
import { type EventSourceMessage, EventSourceParserStream } from 'eventsource-parser/stream';
import { SvcError } from '../errors.ts';
import type { RawAnswer } from '../transport/request.ts';

/** An event of a streamed command. A broken stream throws instead. */
export type ExecStreamEvent =
  | ({ readonly type: 'stdout' | 'stderr' } & ExecOutputEvent)
  | ({ readonly type: 'exit' } & ExecExitEvent);

/** Yields the events of a streamed exec. Throws `stream_ended` when it stops before its `exit` event. */
export async function* readExecEvents({
  response,
  deadline,
}: RawAnswer): AsyncGenerator<ExecStreamEvent, void, void> {
  const requestId = response.headers.get('x-request-id') ?? undefined;
  const broken = (cause?: unknown) => {
    if (deadline.signal.aborted) return deadline.failure();
    const detail = 'The stream broke off before the command ended; whether it went on is unknown.';
    return new SvcError({
      code: 'stream_ended',
      detail,
      status: response.status,
      requestId,
      cause,
    });
  };
  if (response.body === null) throw broken();
  for await (const { event, data } of messagesOf(response.body, broken)) {
    switch (event) {
      case 'stdout':
      case 'stderr':
        yield { type: event, ...(JSON.parse(data) as ExecOutputEvent) };
        break;
      case 'exit':
        yield { type: event, ...(JSON.parse(data) as ExecExitEvent) };
        return;
      case 'error': {
        const { code, message: detail } = JSON.parse(data) as ExecErrorEvent;
        throw new SvcError({ code, detail, status: response.status, requestId });
      }
      default: // A newer service may send further events.
    }
  }
  throw broken();
}

/** The server-sent events of a body. `failure` converts the error of a broken body. */
async function* messagesOf(
  body: ReadableStream<Uint8Array>,
  failure: (cause: unknown) => unknown,
): AsyncGenerator<EventSourceMessage, void, void> {
  const text = new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>;
  const messages = body.pipeThrough(text).pipeThrough(new EventSourceParserStream());
  const reader = messages.getReader();
  try {
    for (;;) {
      const next = await reader.read().catch((cause: unknown) => {
        throw failure(cause);
      });
      if (next.done) return;
      yield next.value;
    }
  } finally {
    // Ends the request when the loop is left early. A failed body is already closed.
    await reader.cancel().catch(() => undefined);
  }
}
