import type { AgentContext, AgentSession, AgentTask, TaskOutcome } from '../agent.ts';
import { MAX_RESULT_CHARS } from '../tools/tool.ts';
import { CHARS_PER_TOKEN } from './conversation/estimate.ts';
import { type Conversations, readRecord, writeRecord } from './conversation/record.ts';
import type { WorkingAgent, WorkLimits } from './loop/agent-loop.ts';
import { Budget } from './loop/budget.ts';
import { SessionModel } from './loop/session-model.ts';
import { createTask, type Task } from './loop/task.ts';
import { TaskFailure } from './loop/task-failure.ts';
import { work } from './loop/work.ts';
import { contextWindow } from './model/context-window.ts';
import { createModel } from './model/create-model.ts';
import { createTransport } from './model/transport.ts';
import type { DeicticOptions } from './options.ts';
import { assembleTeam, type Team } from './team/assemble.ts';
import { createTools } from './tools/index.ts';

/** Largest share of a small context window for the result of a tool. */
const RESULT_SHARE = 0.1;

/** The service's own agent: a loop of model calls and tools, alone or coordinating several agents. */
export class Deictic implements AgentSession {
  readonly #context: AgentContext;
  readonly #options: DeicticOptions;
  readonly #closing = new AbortController();
  readonly #model: SessionModel;
  readonly #limits: WorkLimits;
  readonly #team: Team;
  #task: Task | undefined;

  constructor(context: AgentContext, options: DeicticOptions) {
    this.#context = context;
    this.#options = options;
    const { setup, workingDirectory, home } = context;
    const log = (text: string) => context.log(text);
    const window = options.contextWindow ?? contextWindow(setup.model);
    const model = createModel(setup, createTransport(options.silenceMs));
    this.#model = new SessionModel({ model, dialect: setup.dialect, window, options, log });
    this.#limits = {
      resultChars: Math.min(MAX_RESULT_CHARS, Math.floor(window * RESULT_SHARE * CHARS_PER_TOKEN)),
    };
    // Tool processes end with this agent, even if the runtime outlives it.
    const signal = AbortSignal.any([context.signal, this.#closing.signal]);
    const processes = { home, workingDirectory, signal, env: () => context.env() };
    this.#team = assembleTeam({
      setup,
      workingDirectory,
      tools: createTools(processes, this.#limits.resultChars, options.machine),
      restored: restore(context),
      perform: (agent, prompt) => this.#perform(agent, prompt),
      log,
    });
  }

  async runTask({ prompt }: AgentTask, interrupt: AbortSignal): Promise<TaskOutcome> {
    const signal = AbortSignal.any([interrupt, this.#context.signal, this.#closing.signal]);
    const { lead } = this.#team;
    this.#task = createTask(this.#context, new Budget(this.#options), signal);
    try {
      return { status: 'completed', result: await this.#perform(lead, prompt) };
    } catch (error) {
      if (signal.aborted) return { status: 'interrupted', result: lastWords(lead) };
      const failure = error instanceof TaskFailure ? error : this.#unexpected(error);
      const { code, message, agent = lead.name } = failure;
      const speaker = agent === undefined ? {} : { agent };
      this.#context.emit({ type: 'error', code, message, ...speaker });
      return { status: 'failed', result: message };
    } finally {
      this.#task = undefined;
    }
  }

  conversation(): string {
    return writeRecord(this.#team.conversations(), this.#context.setup);
  }

  async close(): Promise<void> {
    this.#closing.abort();
  }

  async #perform(agent: WorkingAgent, prompt: string): Promise<string> {
    const task = this.#task;
    if (task === undefined) throw new TaskFailure('agent_failed');
    return await work(agent, prompt, { task, model: this.#model, limits: this.#limits });
  }

  #unexpected(error: unknown): TaskFailure {
    this.#context.log(error instanceof Error ? (error.stack ?? error.message) : String(error));
    return new TaskFailure('agent_failed');
  }
}

/** The assistant's last message, which after an interrupt ends with a note about it. */
function lastWords({ conversation }: WorkingAgent): string {
  const last = conversation.messages().at(-1);
  return typeof last?.content === 'string' ? last.content : '';
}

function restore(context: AgentContext): Conversations {
  const { setup } = context;
  if (setup.conversation === undefined || setup.conversation === '') return new Map();
  try {
    return readRecord(setup.conversation, setup);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    context.log(`the conversation cannot be read, starting a new one: ${reason.slice(0, 500)}`);
    return new Map();
  }
}
