import { setTimeout as sleep } from 'node:timers/promises';
import type { Dialogue } from './dialogue.ts';
import { AgentFailure } from './failure.ts';

/** Rejects when the process ends. */
export async function failAtEnd(name: string, dialogue: Dialogue): Promise<never> {
  const { exitCode, signal } = await dialogue.ended;
  const how = signal === undefined ? `with exit code ${exitCode}` : `by ${signal}`;
  throw new AgentFailure('agent_failed', `${name} ended ${how}.`);
}

/** Rejects after `ms`, or without meaning when `over` aborts first. */
export async function failAfter(ms: number, detail: string, over: AbortSignal): Promise<never> {
  await sleep(ms, undefined, { signal: over });
  throw new AgentFailure('agent_failed', detail);
}

/** Rejects when the CLI has been silent for `ms`, or without meaning when `over` aborts first. */
export async function failInSilence(
  name: string,
  dialogue: Dialogue,
  ms: number,
  over: AbortSignal,
): Promise<never> {
  while (dialogue.silentMs < ms) await sleep(ms - dialogue.silentMs, undefined, { signal: over });
  throw new AgentFailure('agent_failed', `${name} was silent for ${ms / 1000} seconds.`);
}

/** Settles when `signal` aborts. */
export function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}

/** Rejects when `signal` aborts. */
export async function failWhenAborted(signal: AbortSignal, detail: string): Promise<never> {
  await aborted(signal);
  throw new AgentFailure('agent_failed', detail);
}
