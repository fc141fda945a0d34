import { Readable } from 'node:stream';
import { makeProblem, PROBLEM_MEDIA_TYPE } from '@svc/contract';
import { formatEvent } from '@svc/service-kit';
import type { WorkerDouble } from '@svc/worker-double';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Harness } from '../../test/harness.ts';
import { useWorker } from '../../test/use-worker.ts';

let harness: Harness;
let key: string;
let worker: WorkerDouble;
let vmId: string;

useWorker((fixture) => {
  ({ harness, key, worker } = fixture);
});
beforeEach(async () => {
  vmId = await harness.create(key);
});

const UNREACHABLE = { status: 503, body: { code: 'worker_unreachable' } };
const NOT_RUNNING = { status: 409, body: { code: 'sandbox_not_running' } };
const on = (path: string, method: string, call: object = {}) =>
  harness.call(method, `/v1/sandboxes/${vmId}${path}`, { key, ...call });
const exec = () => on('/exec', 'POST', { json: { command: 'x' } });
const upload = () =>
  on('/files?path=/a', 'POST', {
    raw: 'bytes',
    headers: { 'content-type': 'application/octet-stream' },
  });

async function drain(): Promise<void> {
  const { status } = await worker.heartbeat(harness.plane.url, worker.id, { draining: true });
  expect(status).toBe(200);
}

/** What requests do until the worker is back, with another address and another certificate. */
async function overRestart<T>(send: () => Promise<T>[]): Promise<T[]> {
  await drain();
  await worker.stop();
  const answers = send();
  const settled: unknown[] = [];
  for (const answer of answers) void answer.then((value) => settled.push(value));
  await worker.start();
  expect(settled).toEqual([]);
  await worker.register(harness.plane.url);
  return Promise.all(answers);
}

describe('a worker that restarts in place', () => {
  test('keeps requests waiting, none of which fails', async () => {
    worker.files.set('/b', Buffer.from('b'));
    const answers = await overRestart(() => [
      exec(),
      on('/exec', 'POST', { json: { command: 'x' }, headers: { accept: 'text/event-stream' } }),
      upload(),
      on('/files?path=/b', 'GET', { headers: { accept: 'application/octet-stream' } }),
      on('/cancel', 'POST'),
      on('/resume', 'POST'),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
    expect(worker.files.get('/a')).toEqual(Buffer.from('bytes'));
    const [deleted] = await overRestart(() => [on('', 'DELETE')]);
    expect(deleted).toMatchObject({ status: 200, body: { state: 'destroyed' } });
  });

  test('may take longer than one that fell silent without a word', async () => {
    const silence = `update workers set heartbeat_at = now() - interval '60 seconds'`;
    await drain();
    await worker.stop();
    const answer = exec();
    await harness.sql.query(silence);
    await worker.start();
    await worker.register(harness.plane.url);
    expect(await answer).toMatchObject({ status: 200 });
    await drain();
    await worker.stop();
    await harness.sql.query(silence);
    // Nobody needs the worker for a deletion.
    expect(await on('', 'DELETE')).toMatchObject({ status: 200, body: { state: 'destroyed' } });
  });

  test('that does not come back, or has not said so, is unreachable', async () => {
    await drain();
    await worker.stop();
    const answer = exec();
    await harness.sql.query(`update workers set heartbeat_at = now() - interval '121 seconds'`);
    expect(await answer).toMatchObject(UNREACHABLE);
    await harness.sql.query('update workers set draining = false, heartbeat_at = now()');
    expect(await exec()).toMatchObject(UNREACHABLE);
  });

  test('and ends its sandboxes instead keeps no request waiting for one that has ended', async () => {
    let begun = 0;
    const refused = Promise.withResolvers<void>();
    async function* refusal() {
      await refused.promise;
      yield JSON.stringify(makeProblem('shutting_down', 'req_1'));
    }
    worker.lies.set('exec', () => {
      begun += 1;
      const body = Readable.from(refusal());
      return { status: 503, type: PROBLEM_MEDIA_TYPE, body };
    });
    // One that has reached the worker, and those that wait from the start.
    const reached = exec();
    await expect.poll(() => begun).toBe(1);
    await drain();
    const waiting = [upload(), on('/pause', 'POST'), on('/cancel', 'POST')];
    refused.resolve();
    await worker.event(harness.plane.url, worker.end(vmId, 'drained'));
    const answers = await Promise.all([reached, ...waiting]);
    for (const answer of answers) expect(answer).toMatchObject(NOT_RUNNING);
  });

  test('gets no command a second time that it has begun', async () => {
    let runs = 0;
    worker.lies.set('exec', () => {
      runs += 1;
      return {
        type: 'text/event-stream',
        body: formatEvent('error', { code: 'shutting_down', message: 'The worker ends.' }),
      };
    });
    const answer = exec();
    await expect.poll(() => runs).toBe(1);
    expect(await answer).toMatchObject(UNREACHABLE);
    expect(runs).toBe(1);
  });
});
