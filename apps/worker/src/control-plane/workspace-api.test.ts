import { WorkspaceChanges, WorkspaceCommitRequest, WorkspaceObjectsRequest } from '@svc/contract';
import { Compile } from 'typebox/compile';
import { beforeEach, expect, it } from 'vitest';
import type { Answer, Call } from './control-plane-transport.ts';
import { WorkspaceApi } from './workspace-api.ts';

const OWNER = { vmId: 'vm/1', generation: 7 };
const BASE = '/sandboxes/vm%2F1/workspace';
const FLUSH = '0190b6c0-0000-7000-8000-000000000000';
const NEVER = new AbortController().signal;

let calls: Call[];
let reply: unknown;

const api = new WorkspaceApi({
  json: async <T>(call: Call, answer: Answer<T>) => {
    calls.push(call);
    if (!answer.Check(reply)) throw new Error('invalid');
    return reply;
  },
  done: async (call) => {
    calls.push(call);
  },
});

beforeEach(() => {
  calls = [];
});

it('names the sandbox and its generation in every call', async () => {
  reply = { entries: [], next: 'YQ' };
  expect(await api.entries(OWNER, undefined, NEVER)).toEqual(reply);
  await api.entries(OWNER, 'YQ', NEVER);
  reply = { objects: [{ path: 'YQ', version: 1, size: 1, url: '/x' }] };
  expect(await api.objects(OWNER, ['YQ'], NEVER)).toHaveLength(1);
  await api.stage(OWNER, FLUSH, [{ kind: 'deleted', path: 'YQ', version: 1 }], NEVER);
  reply = { version: 1, refused_count: 0, refused: [] };
  expect(await api.commit(OWNER, FLUSH, NEVER)).toEqual(reply);
  reply = { ids: [] };
  await api.missing(OWNER, ['x'], NEVER);
  expect(calls.map(({ method, path }) => `${method} ${path}`)).toEqual([
    `GET ${BASE}/entries?generation=7`,
    `GET ${BASE}/entries?generation=7&after=YQ`,
    `POST ${BASE}/objects/downloads`,
    `POST ${BASE}/flushes/${FLUSH}/changes`,
    `POST ${BASE}/flushes/${FLUSH}/commit`,
    `POST ${BASE}/chunks/missing`,
  ]);
  const schemas = [WorkspaceObjectsRequest, WorkspaceChanges, WorkspaceCommitRequest];
  for (const [index, schema] of schemas.entries()) {
    expect(Compile(schema).Check(calls[index + 2]?.json)).toBe(true);
  }
  expect(calls.every(({ deadlineMs }) => deadlineMs > 0)).toBe(true);
});

it('refuses an answer that is not what the contract says', async () => {
  reply = { entries: [{ kind: 'device' }] };
  await expect(api.entries(OWNER, undefined, NEVER)).rejects.toThrow('invalid');
});
