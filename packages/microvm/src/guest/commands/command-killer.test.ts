import { afterEach, beforeEach, expect, test } from 'vitest';
import { MicrovmError } from '../../microvm-error.ts';
import { CommandKiller } from './command-killer.ts';

const RETRIES = { attempts: 5, baseMs: 1, maxMs: 1 };

let answers: boolean;
let asked: number[];
let killed: number[];
let killer: CommandKiller;

beforeEach(() => {
  [answers, asked, killed] = [true, [], []];
  const channel = {
    kill: async (mark: number) => {
      asked.push(mark);
      if (!answers) throw new MicrovmError('timeout', 'the guest does not answer');
      killed.push(mark);
    },
  };
  killer = new CommandKiller(channel, RETRIES);
});
afterEach(() => killer.close());

const kill = (mark: number) => killer.kill(mark, new AbortController().signal);

test('a command is killed once', async () => {
  await kill(1);
  killer.tryAgain();
  await kill(2);
  expect(asked).toEqual([1, 2]);
});

test('a command of a guest that is slow is killed later', async () => {
  answers = false;
  await kill(1);
  answers = true;
  await expect.poll(() => killed).toEqual([1]);
});

test('commands of a guest that was paused for long are killed when it runs again', async () => {
  answers = false;
  await kill(1);
  // The first attempt, and all of those in the background.
  await expect.poll(() => asked).toHaveLength(1 + RETRIES.attempts);
  await kill(2);
  answers = true;
  killer.tryAgain();
  await expect.poll(() => killed).toEqual([1, 2]);
});

test('a mark that another command gets is no longer killed', async () => {
  answers = false;
  await Promise.all([kill(1), kill(2)]);
  killer.forget(1);
  answers = true;
  killer.tryAgain();
  await expect.poll(() => killed).toEqual([2]);
});

test('of a guest that kills nothing, only the newest commands are remembered', async () => {
  answers = false;
  for (let mark = 0; mark < 300; mark += 1) await kill(mark);
  answers = true;
  killer.tryAgain();
  await expect.poll(() => killed.at(-1)).toBe(299);
  expect(killed).toHaveLength(256);
});

test('what was left is given up at the end', async () => {
  answers = false;
  await kill(1);
  killer.close();
  answers = true;
  killer.tryAgain();
  await kill(2);
  expect(killed).toEqual([2]);
});
