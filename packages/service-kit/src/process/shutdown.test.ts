import { once } from 'node:events';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { Shutdown, type ShutdownPhase } from './shutdown.ts';

const logger = pino({ level: 'silent' });

function recording() {
  const shutdown = new Shutdown(logger);
  const order: string[] = [];
  const add = (phase: ShutdownPhase, name: string, run = async () => {}, deadlineMs = 5000) => {
    shutdown.add({
      name,
      phase,
      deadlineMs,
      async run(signal) {
        order.push(name);
        await run.call(signal);
      },
    });
  };
  return { shutdown, order, add };
}

describe('shutdown', () => {
  it('runs the phases once and in order', async () => {
    const { shutdown, order, add } = recording();
    add('close', 'pool');
    add('drain', 'listener');
    add('flush', 'state');
    add('disconnect', 'sockets');
    add('end', 'sandboxes');
    const outcomes = await Promise.all([shutdown.run('test'), shutdown.run('again')]);
    expect(order).toEqual(['listener', 'sockets', 'state', 'sandboxes', 'pool']);
    expect(outcomes).toEqual([[], []]);
    expect(shutdown.signal.aborted).toBe(true);
  });

  it('continues after tasks that fail or hang, and returns their names', async () => {
    const { shutdown, order, add } = recording();
    add('flush', 'failing', () => Promise.reject(new Error('disk')));
    add('flush', 'hanging', () => new Promise(() => undefined), 20);
    add('close', 'pool');
    expect((await shutdown.run('test')).toSorted()).toEqual(['failing', 'hanging']);
    expect(order).toContain('pool');
  });

  it('goes on without the rest of its drain when hurried, which later phases ignore', async () => {
    const { shutdown, order, add } = recording();
    expect(shutdown.hurry()).toBe(false);
    const draining = Promise.withResolvers<void>();
    shutdown.add({
      name: 'requests',
      phase: 'drain',
      deadlineMs: 60_000,
      run: async (signal) => {
        draining.resolve();
        await once(signal, 'abort');
      },
    });
    add('close', 'pool', async () => {
      expect(shutdown.hurry()).toBe(false);
    });
    const outcome = shutdown.run('test');
    await draining.promise;
    expect(shutdown.hurry()).toBe(true);
    expect(await outcome).toEqual([]);
    expect(order).toEqual(['pool']);
  });
});
