import type { WorkerMessage } from '@svc/contract';

type Fields = Readonly<Record<string, unknown>>;

/** The required fields of each message: guards against bugs of the worker, and against other processes. */
const CHECKS: Readonly<Record<WorkerMessage['type'], (message: Fields) => boolean>> = {
  configure: isStart,
  attach: ({ token, after }) => isToken(token) && Number.isSafeInteger(after),
  ack: ({ n }) => Number.isSafeInteger(n),
  client: ({ c, frame }) => Number.isSafeInteger(c) && isObject(frame),
  env: ({ env, llm }) => [env, llm].every((value) => value === undefined || isObject(value)),
  capture: ({ id, whole, quality }) =>
    Number.isSafeInteger(id) && typeof whole === 'boolean' && Number.isSafeInteger(quality),
  capture_stop: () => true,
  save: () => true,
  rehearse: isStart,
};

/** Parses one line. Throws when it is not a message of the link. */
export function readWorkerMessage(line: string): WorkerMessage {
  const message: unknown = JSON.parse(line);
  if (!isObject(message) || !isType(message.type) || !CHECKS[message.type](message)) {
    throw new Error('not a message of the link');
  }
  return message as WorkerMessage;
}

function isType(value: unknown): value is WorkerMessage['type'] {
  return typeof value === 'string' && Object.hasOwn(CHECKS, value);
}

function isStart({ token, setup }: Fields): boolean {
  return isToken(token) && isObject(setup);
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isToken(value: unknown): boolean {
  return typeof value === 'string' && value.length > 0;
}
