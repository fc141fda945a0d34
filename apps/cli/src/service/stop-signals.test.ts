import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { StopSignals } from './stop-signals.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Delivers a signal to the listeners of this process, so long after the previous one that it is no duplicate. */
function receive(signal: NodeJS.Signals): void {
  vi.advanceTimersByTime(2_000);
  process.emit(signal, signal);
}

test('the first signal decides whether the sandboxes stay', () => {
  for (const [signal, keepSandboxes] of [
    ['SIGTERM', false],
    ['SIGINT', false],
    ['SIGHUP', false],
    ['SIGUSR2', true],
  ] as const) {
    using stop = new StopSignals();
    receive(signal);
    process.emit('SIGUSR2', 'SIGUSR2');
    expect(stop.request).toEqual({ reason: signal, keepSandboxes });
    expect(stop.signal.aborted).toBe(true);
  }
});

test('a later signal ends the drain, and the next one the process', () => {
  const exit = vi.spyOn(process, 'exit').mockReturnValue(undefined as never);
  vi.spyOn(console, 'error').mockReturnValue(undefined);
  const hurry = vi.fn().mockReturnValueOnce(true).mockReturnValue(false);
  using stop = new StopSignals();
  stop.hurries({ hurry });
  receive('SIGINT');
  process.emit('SIGINT', 'SIGINT');
  expect(hurry).not.toHaveBeenCalled();
  receive('SIGINT');
  process.emit('SIGINT', 'SIGINT');
  expect(hurry).toHaveBeenCalledTimes(1);
  expect(exit).not.toHaveBeenCalled();
  receive('SIGTERM');
  expect(exit).toHaveBeenCalledWith(1);
});
