import { z } from 'zod';
import { type AgentTool, defineTool, done, failed } from '../../tools/tool.ts';
import { truncateMiddle } from '../../tools/truncate.ts';
import { htmlText } from './html-text.ts';

const DEADLINE_MS = 30_000;
const MAX_BYTES = 1024 * 1024;

export function fetchTool(maxChars: number): AgentTool {
  return defineTool({
    name: 'fetch',
    description:
      'Fetches a page or file from an http or https URL as text. HTML is converted to readable text. The middle of a long response is cut; use the shell to download files.',
    input: z.object({ url: z.url({ protocol: /^https?$/ }).max(8_192) }),
    async run({ url }, signal) {
      const deadline = AbortSignal.timeout(DEADLINE_MS);
      try {
        const response = await fetch(url, {
          signal: AbortSignal.any([signal, deadline]),
          headers: { accept: 'text/html, text/plain, application/json, */*;q=0.5' },
        });
        const type = response.headers.get('content-type') ?? '';
        const raw = await readBounded(response);
        const text = truncateMiddle(type.includes('html') ? htmlText(raw) : raw, maxChars);
        if (response.ok) return done(text === '' ? '[empty response]' : text);
        return failed(`The server answered ${response.status}.\n${text}`.trimEnd());
      } catch (error) {
        signal.throwIfAborted();
        if (deadline.aborted) return failed(`No complete response within ${DEADLINE_MS / 1000} s.`);
        return failed(`The URL cannot be fetched: ${describe(error)}`);
      }
    },
  });
}

/** The body up to {@link MAX_BYTES}. The rest is not read. */
async function readBounded(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    text += decoder.decode(chunk, { stream: true });
    if (bytes >= MAX_BYTES) return `${text}\n[truncated]`;
  }
  return text + decoder.decode();
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
