/** Google's generateContent and streamGenerateContent. https://ai.google.dev/api/generate-content */

import { elements, member, textOf } from '../json.ts';
import {
  type Answer,
  type Conversation,
  type Dialect,
  type StreamPart,
  serverSentEvent,
  type ToolCall,
} from './dialect.ts';

const CALL = /\/models\/([^/]+):(generateContent|streamGenerateContent)$/;
const STATUSES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};

export const google: Dialect = {
  name: 'google',
  matches: (path) => CALL.test(path),
  read,
  stream,
  whole: (answer) => ({
    ...candidate([...texts(answer), ...answer.calls.map(functionCall)], true),
    ...foot(answer, answer.usage.output),
  }),
  failure: (status, message) => ({
    error: { code: status, message, status: STATUSES[status] ?? 'INTERNAL' },
  }),
};

function read(body: unknown, { pathname }: URL): Conversation {
  const [, model = '', method = ''] = CALL.exec(pathname) ?? [];
  const contents = elements(member(body, 'contents')).map((content) => ({
    role: member(content, 'role'),
    parts: elements(member(content, 'parts')),
  }));
  const said = contents
    .filter(({ role }) => role !== 'model')
    .map(({ parts }) => textOf(parts))
    .filter((text) => text !== '');
  const newest = contents.at(-1)?.parts.at(-1);
  const result = member(newest, 'functionResponse');
  return {
    model: decodeURIComponent(model),
    system: textOf(member(member(body, 'systemInstruction'), 'parts')),
    user: said.at(-1) ?? '',
    tool: result === undefined ? undefined : JSON.stringify(member(result, 'response') ?? null),
    stream: method === 'streamGenerateContent',
  };
}

const texts = ({ chunks }: Answer) => (chunks.length > 0 ? [{ text: chunks.join('') }] : []);

const functionCall = ({ id, name, arguments: args }: ToolCall) => ({
  functionCall: { id: `call_${id}`, name, args },
});

function candidate(parts: unknown[], isLast: boolean) {
  const finish = isLast ? { finishReason: 'STOP' } : {};
  return { candidates: [{ content: { parts, role: 'model' }, ...finish, index: 0 }] };
}

function foot({ id, model, usage: { input, cached } }: Answer, output: number) {
  return {
    usageMetadata: {
      promptTokenCount: input,
      candidatesTokenCount: output,
      totalTokenCount: input + output,
      ...(cached > 0 ? { cachedContentTokenCount: cached } : {}),
    },
    modelVersion: model,
    responseId: id,
  };
}

/** Each part has the token counts so far; the last part has the final ones. Without `alt=sse` the stream is one JSON list. */
function stream(answer: Answer, _body: unknown, { searchParams }: URL): StreamPart[] {
  const all = [
    ...answer.chunks.map((text) => ({ part: { text } as object, isChunk: true })),
    ...answer.calls.map((call) => ({ part: functionCall(call) as object, isChunk: false })),
  ];
  if (all.length === 0) all.push({ part: { text: '' }, isChunk: false });
  const isSse = searchParams.get('alt') === 'sse';
  return all.map(({ part, isChunk }, index) => {
    const isLast = index === all.length - 1;
    const output = isLast ? answer.usage.output : Math.min(index + 1, answer.usage.output);
    const data = { ...candidate([part], isLast), ...foot(answer, output) };
    const listed = `${index === 0 ? '[' : ','}${JSON.stringify(data)}${isLast ? ']' : '\n'}`;
    return { wire: isSse ? serverSentEvent(data) : listed, isChunk };
  });
}
