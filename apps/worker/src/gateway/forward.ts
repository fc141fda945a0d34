import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { type LlmVendor, NOT_IN_HEADER } from '@svc/contract';
import type { Egress, EgressResponse } from '@svc/egress';
import type { ByteRates } from '../rates/byte-rates.ts';
import type { LlmAccount } from './account.ts';
import { GatewayFailure } from './answer/failure.ts';
import { pipeAnswer } from './answer/pipe-answer.ts';
import { responseHeaders } from './answer/response-headers.ts';
import { paced } from './gateway-rates.ts';
import type { GatewayLimits } from './limits.ts';
import { type Target, upstreamUrl } from './request/endpoints.ts';
import {
  BodyError,
  type HeldBytes,
  isRewritten,
  limitedBody,
  readRewritten,
} from './request/request-body.ts';
import { requestHeaders } from './request/request-headers.ts';
import { UsageMeter } from './usage/usage-meter.ts';

export interface ForwardParts {
  readonly egress: Egress;
  readonly limits: GatewayLimits;
  readonly rates: Pick<ByteRates, 'ready' | 'spend'>;
  readonly vendorBaseUrls: Readonly<Record<LlmVendor, string>>;
  readonly held: HeldBytes;
}

export interface Exchange {
  readonly account: LlmAccount;
  readonly target: Target;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly signal: AbortSignal;
}

/**
 * Forwards a request to the account's endpoint, and the response to the sandbox. Reports the vendor's token counts in any
 * case. Rejects when there is no response, or when it is cut off.
 */
export async function forward(parts: ForwardParts, exchange: Exchange): Promise<void> {
  const { account, target, response, signal } = exchange;
  // Values in bundles often end with a line break, which is not allowed in a header.
  const key = account.apiKey.reveal().trim();
  if (NOT_IN_HEADER.test(key)) {
    throw new GatewayFailure(
      401,
      'The model key has characters that no header can have, such as a line break; correct its secret.',
    );
  }
  const { statusCode, headers, body } = await ask(parts, exchange, key);
  // The reader of the body sees a failure; once nothing reads it, an error event must not end the process.
  body.on('error', () => undefined);
  const contentType = headers['content-type'];
  const meter = new UsageMeter(Array.isArray(contentType) ? contentType[0] : contentType);
  try {
    assertPlain(statusCode, headers);
    response.writeHead(statusCode, responseHeaders(headers, key));
    response.flushHeaders();
    const answer = paced(body, parts.rates, account.tenantId, signal);
    await pipeAnswer(answer, response, { key, meter, idleMs: parts.limits.idleMs, signal });
  } finally {
    body.destroy();
    const { usage } = meter;
    if (usage !== undefined && target.method === 'POST') account.onUsage(usage);
  }
}

async function ask(
  { egress, limits, rates, vendorBaseUrls, held }: ForwardParts,
  { account, target, request, signal }: Exchange,
  key: string,
): Promise<EgressResponse> {
  const { method, dialect } = target;
  const hasBody = method === 'POST';
  const headers = requestHeaders(request.headers, dialect, key, hasBody);
  const send = (body: Readable | Buffer | null, length: string | undefined) =>
    egress.request(upstreamUrl(account.baseUrl ?? vendorBaseUrls[account.vendor], target), {
      method,
      headers: length === undefined ? headers : { ...headers, 'content-length': length },
      body,
      signal,
      headersTimeout: limits.idleMs,
      bodyTimeout: limits.idleMs,
    });
  if (!hasBody) return await send(null, undefined);
  const { 'content-length': length, 'content-encoding': encoding } = request.headers;
  if (encoding !== undefined) throw new GatewayFailure(400, 'Send the request uncompressed.');
  if (Number(length ?? 0) > limits.requestBytes) throw new BodyError('too_large');
  const all = limitedBody(request, limits.requestBytes);
  const body = paced(all, rates, account.tenantId, signal);
  if (!isRewritten(target)) {
    const stream = Readable.from(body, { objectMode: false });
    // If the endpoint responds before the body breaks off, nothing else handles the stream's error.
    return await send(
      stream.on('error', () => undefined),
      length,
    );
  }
  let taken = 0;
  const take = (bytes: number) => {
    const isWithin = held.take(bytes);
    if (isWithin) taken += bytes;
    return isWithin;
  };
  try {
    return await send(await readRewritten(body, target, { take }), undefined);
  } finally {
    held.give(taken);
  }
}

/** Rejects a redirect or a compressed response: its tokens could not be counted, nor the key masked. */
function assertPlain(statusCode: number, headers: IncomingHttpHeaders): void {
  const encoding = headers['content-encoding'];
  const problem =
    statusCode >= 300 && statusCode < 400
      ? 'redirects; its final address is needed'
      : encoding !== undefined && encoding !== 'identity'
        ? 'compresses its answers although it was asked not to'
        : undefined;
  if (problem !== undefined) throw new GatewayFailure(502, `The model endpoint ${problem}.`);
}
