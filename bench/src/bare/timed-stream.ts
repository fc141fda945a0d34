import { PLACEHOLDER_LLM_KEY } from '@svc/contract';
import { type Agent, request } from 'undici';
import { summarise } from '../measure/statistics.ts';

/** The only argument of `timed-upstream.ts`, as JSON. */
export interface UpstreamOptions {
  readonly host: string;
  readonly certificateFile: string;
  readonly keyFile: string;
}

/** Requests one stream and returns the median transit time of its events, in milliseconds. */
export async function medianTransit(baseUrl: string, dispatcher: Agent): Promise<number> {
  const { body, statusCode } = await request(`${baseUrl}/v1/messages`, {
    dispatcher,
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': PLACEHOLDER_LLM_KEY },
    body: '{"model":"claude-sonnet-4-5","max_tokens":64,"stream":true,"messages":[]}',
  });
  if (statusCode !== 200) throw new Error(`${baseUrl}: ${statusCode} ${await body.text()}`);
  const transits: number[] = [];
  for await (const chunk of body) {
    const now = performance.timeOrigin + performance.now();
    for (const [, sent] of String(chunk).matchAll(/"sent":([\d.]+)/g)) {
      transits.push(now - Number(sent));
    }
  }
  return summarise(transits).median;
}
