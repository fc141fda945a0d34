import { AGENTS, type Agent } from '@svc/contract';

/**
 * Does the same with every agent at the same time, since a turn is mostly waiting; the results are in the order of
 * `AGENTS`. Settles when all are done; fails with what went wrong with each.
 */
export async function withEachAgent<T>(work: (agent: Agent) => Promise<T>): Promise<T[]> {
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
