import type { AgentTask, TaskOutcome } from '../agents/agent.ts';
import type { AgentSupervisor } from './agent-supervisor.ts';

/** Time limit for an agent to end an interrupted task, in milliseconds. */
const INTERRUPT_MS = 20_000;

const INTERRUPTED: TaskOutcome = { status: 'interrupted', result: '' };
const FAILED: TaskOutcome = { status: 'failed', result: '' };

/**
 * Has the agent run a task. An agent that throws or ignores an interrupt is ended, and the next task starts
 * another. Never rejects.
 */
export async function runTask(
  supervisor: AgentSupervisor,
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
    const outcome = await Promise.race([startAndRun(supervisor, task, signal), gaveUp.promise]);
    if (outcome !== undefined) return outcome;
    throw new Error('the agent ignored an interrupt');
  } catch (error) {
    onFailed(error);
    await supervisor.close().catch(onFailed);
    return signal.aborted ? INTERRUPTED : FAILED;
  } finally {
    signal.removeEventListener('abort', interrupted);
    clearTimeout(timer);
  }
}

async function startAndRun(
  supervisor: AgentSupervisor,
  task: AgentTask,
  signal: AbortSignal,
): Promise<TaskOutcome> {
  const agent = await supervisor.started();
  if (signal.aborted) return INTERRUPTED;
  return agent === undefined ? FAILED : agent.runTask(task, signal);
}
