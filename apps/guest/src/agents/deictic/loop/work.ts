import type { ToolSet } from 'ai';
import type { Conversation } from '../conversation/conversation.ts';
import type { Stop } from '../conversation/settled.ts';
import { truncateMiddle } from '../conversation/truncate.ts';
import type { ModelAnswer, ToolRequest } from '../model/call-model.ts';
import { ModelFailure } from '../model/model-failure.ts';
import type { AgentTool, ToolOutcome } from '../tools/index.ts';
import type { SessionModel } from './session-model.ts';
import type { SpokenFrame, Task } from './task.ts';
import { TaskFailure } from './task-failure.ts';

/** One who works on tasks: a conversation with the model, and tools. */
export interface WorkingAgent {
  /** Who its frames say that speaks; undefined where there is only one. */
  readonly name: string | undefined;
  readonly conversation: Conversation;
  readonly tools: readonly AgentTool[];
  instructions(): string;
}

/** Longest result of a tool in characters, as client and model get it. */
export interface WorkLimits {
  readonly resultChars: number;
}

/** How often a model may go on with an answer that its output limit cut. */
const MAX_CONTINUATIONS = 3;
const GO_ON = '[The answer was cut at the output limit. Go on exactly where it stopped.]';

const INTERRUPTED: Stop = {
  result: 'Interrupted by the user.',
  words: '[Interrupted by the user.]',
};
const BROKEN_OFF: Stop = {
  result: 'Not run: the task had failed.',
  words: '[The task failed before it was finished.]',
};
const FAILED_RESULT = 'The task has failed.';
const DROPPED =
  '[A task was left out here: the model endpoint refused it. Files may have changed.]';

/**
 * Has an agent work on a prompt until it has nothing more to do, and gives its last words. The conversation is
 * one that can go on afterwards, whatever happens.
 * @throws a TaskFailure, or the reason of the task's signal when that aborts
 */
export async function work(
  agent: WorkingAgent,
  prompt: string,
  { task, model, limits }: { task: Task; model: SessionModel; limits: WorkLimits },
): Promise<string> {
  const before = agent.conversation.messages();
  const shift = new Shift(agent, task, model, limits);
  try {
    return await shift.run(prompt);
  } catch (error) {
    if (task.signal.aborted) {
      const words = [shift.unfinished, INTERRUPTED.words].filter((part) => part !== '');
      agent.conversation.settle({ ...INTERRUPTED, words: words.join('\n\n') });
      throw error;
    }
    if (error instanceof ModelFailure && error.code === 'llm_refused') {
      // What was refused once would be refused with every later task.
      agent.conversation.replace([
        ...before,
        { role: 'user', content: DROPPED },
        { role: 'assistant', content: 'Understood.' },
      ]);
    } else {
      agent.conversation.settle(BROKEN_OFF);
    }
    throw asTaskFailure(error, agent.name);
  }
}

/** A failure that says whose it is; what is no failure of a task is given back as it is. */
function asTaskFailure(error: unknown, agent: string | undefined): unknown {
  if (error instanceof TaskFailure) {
    return new TaskFailure(error.code, error.message, error.agent ?? agent);
  }
  return error instanceof ModelFailure ? new TaskFailure(error.code, error.message, agent) : error;
}

class Shift {
  /** Text of the answer that is not whole yet. */
  unfinished = '';
  readonly #agent: WorkingAgent;
  readonly #task: Task;
  readonly #model: SessionModel;
  readonly #limits: WorkLimits;
  readonly #tools: ToolSet;

  constructor(agent: WorkingAgent, task: Task, model: SessionModel, limits: WorkLimits) {
    this.#agent = agent;
    this.#task = task;
    this.#model = model;
    this.#limits = limits;
    this.#tools = Object.fromEntries(agent.tools.map(({ name, definition }) => [name, definition]));
  }

  async run(prompt: string): Promise<string> {
    const { conversation } = this.#agent;
    conversation.ask(prompt);
    let words = '';
    let continuations = 0;
    for (;;) {
      const answer = await this.#step();
      if (answer.requests.length > 0) {
        for (const request of answer.requests) await this.#runTool(request);
        words = '';
        continue;
      }
      words += answer.text;
      if (answer.finish !== 'length' || continuations >= MAX_CONTINUATIONS) return words;
      continuations += 1;
      conversation.ask(GO_ON);
    }
  }

  async #step(): Promise<ModelAnswer> {
    const { conversation } = this.#agent;
    this.#task.budget.takeTurn();
    this.unfinished = '';
    const answer = await this.#model.answer(conversation, {
      task: this.#task,
      instructions: this.#agent.instructions(),
      tools: this.#tools,
      onText: async (data) => {
        this.unfinished += data;
        await this.#task.say(this.#spoken({ type: 'text_delta', data }));
      },
    });
    conversation.answer(
      answer.message ?? { role: 'assistant', content: '[No answer.]' },
      answer.inputTokens + answer.outputTokens,
    );
    this.unfinished = '';
    if (answer.text !== '') {
      await this.#task.say(
        this.#spoken({ type: 'message', role: 'assistant', content: answer.text }),
      );
    }
    return answer;
  }

  async #runTool(request: ToolRequest): Promise<void> {
    const { id, name, input } = request;
    await this.#task.say(this.#spoken({ type: 'tool_call', id, name, arguments: input }));
    const result = (text: string, isError: boolean): SpokenFrame => {
      const content = truncateMiddle(text, this.#limits.resultChars);
      this.#agent.conversation.result(id, name, content, isError);
      return this.#spoken({ type: 'tool_result', id, content, is_error: isError });
    };
    let outcome: ToolOutcome;
    try {
      outcome = await this.#outcome(request);
    } catch (error) {
      const text = this.#task.signal.aborted ? INTERRUPTED.result : FAILED_RESULT;
      this.#task.close(result(text, true));
      throw error;
    }
    await this.#task.say(result(outcome.text, outcome.isError));
  }

  async #outcome({ name, input, problem }: ToolRequest): Promise<ToolOutcome> {
    const { signal } = this.#task;
    const tool = this.#agent.tools.find((candidate) => candidate.name === name);
    if (tool === undefined) return { text: `There is no tool ${name} here.`, isError: true };
    if (problem !== undefined) return { text: problem, isError: true };
    try {
      return await tool.run(input, signal);
    } catch (error) {
      if (signal.aborted || error instanceof TaskFailure) throw error;
      return { text: error instanceof Error ? error.message : String(error), isError: true };
    }
  }

  #spoken(frame: SpokenFrame): SpokenFrame {
    const { name } = this.#agent;
    return name === undefined ? frame : { ...frame, agent: name };
  }
}
