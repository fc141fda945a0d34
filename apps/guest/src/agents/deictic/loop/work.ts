import { INTERRUPTED_RESULT } from '../../tools/tool.ts';
import type { Stop } from '../conversation/settled.ts';
import { ModelFailure } from '../model/model-failure.ts';
import { AgentLoop, type WorkingAgent, type WorkLimits } from './agent-loop.ts';
import type { SessionModel } from './session-model.ts';
import type { Task } from './task.ts';
import { TaskFailure } from './task-failure.ts';

const INTERRUPTED: Stop = {
  result: INTERRUPTED_RESULT,
  words: '[Interrupted by the user.]',
};
const FAILED: Stop = {
  result: 'Not run: the task had failed.',
  words: '[The task failed before it was finished.]',
};
const DROPPED =
  '[A task was left out here: the model endpoint refused it. Files may have changed.]';

/**
 * Has an agent work on a prompt to the end and returns its final text. Whatever happens, the conversation can be
 * continued afterwards.
 * @throws a TaskFailure, or the reason of the task's signal when it aborts
 */
export async function work(
  agent: WorkingAgent,
  prompt: string,
  { task, model, limits }: { task: Task; model: SessionModel; limits: WorkLimits },
): Promise<string> {
  const before = agent.conversation.messages();
  const loop = new AgentLoop(agent, task, model, limits);
  try {
    return await loop.run(prompt);
  } catch (error) {
    if (task.signal.aborted) {
      const words = [loop.unfinished, INTERRUPTED.words].filter((part) => part !== '');
      agent.conversation.settle({ ...INTERRUPTED, words: words.join('\n\n') });
      throw error;
    }
    if (error instanceof ModelFailure && error.traits.conversationRefused) {
      // With these messages, every later task would fail too.
      agent.conversation.replace([
        ...before,
        { role: 'user', content: DROPPED },
        { role: 'assistant', content: 'Understood.' },
      ]);
    } else {
      agent.conversation.settle(FAILED);
    }
    throw asTaskFailure(error, agent.name);
  }
}

/** A TaskFailure that names the agent; unexpected errors are returned unchanged. */
function asTaskFailure(error: unknown, agent: string | undefined): unknown {
  if (error instanceof TaskFailure) {
    return new TaskFailure(error.code, error.message, error.agent ?? agent);
  }
  return error instanceof ModelFailure ? new TaskFailure(error.code, error.message, agent) : error;
}
