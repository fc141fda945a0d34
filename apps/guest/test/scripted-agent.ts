import type { AgentContext, AgentSession, AgentTask, StartAgent } from '../src/agents/agent.ts';

/** An agent for tests. The prompt decides its behaviour; its conversation is the list of prompts. */
export class ScriptedAgent {
  readonly contexts: AgentContext[] = [];
  /** Prompts of the running tasks. */
  readonly running = new Set<string>();
  /** Number of coming starts that fail. */
  failingStarts = 0;
  closed = 0;

  start: StartAgent = async (context) => {
    if (this.failingStarts > 0) {
      this.failingStarts -= 1;
      throw new Error('no agent today');
    }
    this.contexts.push(context);
    const prompts = context.setup.conversation?.split('|') ?? [];
    const session: AgentSession = {
      runTask: async (task, signal) => {
        prompts.push(task.prompt);
        this.running.add(task.prompt);
        try {
          return await this.#act(context, task, signal);
        } finally {
          this.running.delete(task.prompt);
        }
      },
      conversation: () => prompts.join('|'),
      close: async () => {
        this.closed += 1;
      },
    };
    return session;
  };

  async #act(context: AgentContext, { prompt }: AgentTask, signal: AbortSignal) {
    if (prompt.startsWith('throw')) throw new Error('broken agent');
    if (prompt.startsWith('fail')) return { status: 'failed', result: '' } as const;
    if (prompt.startsWith('hang')) await new Promise(() => undefined);
    if (prompt.startsWith('wait')) {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      return { status: 'interrupted', result: 'half' } as const;
    }
    context.emit({ type: 'text_delta', data: `did ${prompt}` });
    return { status: 'completed', result: prompt } as const;
  }
}
