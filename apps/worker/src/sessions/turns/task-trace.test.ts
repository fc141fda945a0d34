import {
  callHeaders,
  currentOrigin,
  RequestScope,
  type SpanStart,
  type Tracing,
} from '@svc/service-kit/tracing';
import { beforeEach, expect, it } from 'vitest';
import { TaskTrace } from './task-trace.ts';

const TRACE = 'a'.repeat(32);

let started: SpanStart[];
let ended: string[];

const tracing: Tracing = {
  start(span) {
    started.push(span);
    const context = { traceId: TRACE, spanId: spanIdOf(started.length), sampled: true };
    return {
      context,
      set: () => undefined,
      fail: () => undefined,
      end: () => void ended.push(span.name),
    };
  },
  takesNew: () => true,
  close: async () => undefined,
};

beforeEach(() => {
  started = [];
  ended = [];
});

/** The id of the nth span. */
function spanIdOf(n: number): string {
  return String(n).padStart(16, '0');
}

/** Runs `task` in a request that is recorded. */
function within<T>(requestId: string, task: () => T): T {
  const scope = new RequestScope(requestId);
  scope.record(tracing, { name: requestId, kind: 'server' });
  const result = scope.run(task);
  scope.end();
  return result;
}

function askModel(trace: TaskTrace): void {
  trace.origin?.begin({ name: 'model request', kind: 'client' })?.end();
}

const requestOf = (trace: TaskTrace) => trace.run(callHeaders)['x-request-id'];
const parentOf = (name: string) => started.findLast((span) => span.name === name)?.parent?.spanId;

it('puts a task without a client below the start of the agent, and model requests below the task', () => {
  const trace = within('start', () => new TaskTrace({}));
  trace.noteBegin();
  trace.noteBegin();
  expect(started).toHaveLength(2);
  expect(parentOf('agent task')).toBe(spanIdOf(1));
  expect(requestOf(trace)).toBe('start');
  askModel(trace);
  expect(parentOf('model request')).toBe(spanIdOf(2));
  trace.noteEnd('completed');
  expect(ended).toEqual(['start', 'model request', 'agent task']);
  askModel(trace);
  expect(parentOf('model request')).toBe(spanIdOf(1));
});

it('puts a task below the client that sent it', () => {
  const trace = within('start', () => new TaskTrace({}));
  trace.noteAsked(within('client', currentOrigin));
  trace.noteBegin();
  expect(requestOf(trace)).toBe('client');
});

it('records nothing for an agent whose start and clients are not', () => {
  const trace = new TaskTrace({});
  trace.noteAsked(undefined);
  trace.noteBegin();
  expect(trace.origin).toBeUndefined();
  expect(trace.run(callHeaders)).toEqual({});
  trace.noteEnd('completed');
  expect(started).toEqual([]);
});
