import type { AgentTask, TaskOutcome } from '../agents/agent.ts';
import type { AgentHolder } from './agent-holder.ts';

/** How long an agent may take to end a task that was interrupted, in milliseconds. */
const INTERRUPT_MS = 20_000;

const INTERRUPTED: TaskOutcome = { status: 'interrupted', result: '' };
const FAILED: TaskOutcome = { status: 'failed', result: '' };

/**
 * Gives a task to the agent. An agent that breaks its word, by failing or by not heeding an interrupt, is ended,
 * and the next task starts it anew. Never rejects.
 */
export async function runTask(
  holder: AgentHolder,
  task: AgentTask,
  signal: AbortSignal,
  onFailed: (error: unknown) => void,
  interruptMs = INTERRUPT_MS,
): Promise<TaskOutcome> {
  const gaveUp = Promise.withResolvers<undefined>();
  let timer: NodeJS.Timeout | undefined;
  const interrupted = () => {
    timer = setTimeout(() => gaveUp.resolve(undefined), interruptMs);
  };
  signal.addEventListener('abort', interrupted, { once: true });
  try {
    const outcome = await Promise.race([startAndRun(holder, task, signal), gaveUp.promise]);
    if (outcome !== undefined) return outcome;
    throw new Error('the agent went on after it was interrupted');
  } catch (error) {
    onFailed(error);
    await holder.close().catch(onFailed);
    return signal.aborted ? INTERRUPTED : FAILED;
  } finally {
    signal.removeEventListener('abort', interrupted);
    clearTimeout(timer);
  }
}

async function startAndRun(
  holder: AgentHolder,
  task: AgentTask,
  signal: AbortSignal,
): Promise<TaskOutcome> {
  const agent = await holder.running();
  if (signal.aborted) return INTERRUPTED;
  return agent === undefined ? FAILED : agent.runTask(task, signal);
}
