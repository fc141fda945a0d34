import { AGENTS, type Agent } from '@svc/contract';

/**
 * Runs the same work for every agent in parallel, since a turn is mostly waiting. Returns the results in the order of
 * `AGENTS`. Waits for all of them, then throws an AggregateError with the failure of each agent that failed.
 */
export async function forEachAgent<T>(work: (agent: Agent) => Promise<T>): Promise<T[]> {
  const named = async (agent: Agent) => {
    try {
      return await work(agent);
    } catch (cause) {
      throw new Error(`${agent}: ${String(cause)}`, { cause });
    }
  };
  const results = await Promise.allSettled(AGENTS.map(named));
  const failures = results.flatMap((result) =>
    result.status === 'rejected' ? [result.reason as Error] : [],
  );
  if (failures.length > 0) {
    throw new AggregateError(failures, failures.map(({ message }) => message).join('\n'));
  }
  return results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
}

/** The result of one agent among those of {@link forEachAgent}. */
export function resultOf<T>(results: readonly T[], agent: Agent): T {
  const index = AGENTS.indexOf(agent);
  if (index >= results.length) throw new Error(`there is no result of ${agent}`);
  return results[index] as T;
}
