import { describe, expect, it } from 'vitest';
import { CleanupError, runEveryStep, runStepsTogether, UndoList } from './undo.ts';

const fail = (message: string) => () => Promise.reject(new Error(message));

describe('runEveryStep', () => {
  it('takes the steps one after the other', async () => {
    const taken: string[] = [];
    const step = (name: string, turns: number) => ({
      name,
      run: async () => {
        for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
        taken.push(name);
      },
    });
    await runEveryStep([step('first', 5), step('second', 1)]);
    expect(taken).toEqual(['first', 'second']);
  });

  it('takes the steps after one that fails, and reports all failures together', async () => {
    let taken = 0;
    const steps = [
      { name: 'close the door', run: fail('stuck') },
      { name: 'count', run: () => (taken += 1) },
      {
        name: 'turn off the light',
        run: () => {
          throw new Error('no switch');
        },
      },
      { name: 'count', run: () => (taken += 1) },
    ];
    const error = await runEveryStep(steps).catch((failure: unknown) => failure);
    expect(taken).toBe(2);
    expect(error).toBeInstanceOf(CleanupError);
    expect(error).toMatchObject({
      message: 'cannot close the door: stuck; cannot turn off the light: no switch',
      errors: [{ message: 'stuck' }, { message: 'no switch' }],
    });
  });
});

describe('runStepsTogether', () => {
  it('settles when every step has, also when one fails', async () => {
    const slow = Promise.withResolvers<void>();
    let done = false;
    const steps = [
      { name: 'end a', run: fail('stuck') },
      { name: 'end b', run: () => slow.promise.then(() => (done = true)) },
    ];
    const running = runStepsTogether(steps);
    slow.resolve();
    await expect(running).rejects.toThrow('cannot end a: stuck');
    expect(done).toBe(true);
  });
});

describe('UndoList', () => {
  it('takes every step once, the newest first', async () => {
    const undo = new UndoList();
    const taken: string[] = [];
    undo.add('undo a', () => taken.push('a'));
    undo.add('undo b', fail('b is stuck'));
    undo.add('undo c', () => taken.push('c'));
    await expect(undo.run()).rejects.toThrow('cannot undo b: b is stuck');
    expect(taken).toEqual(['c', 'a']);
    await undo.run();
    expect(taken).toEqual(['c', 'a']);
  });
});
