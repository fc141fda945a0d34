import { type ToolSet, tool } from 'ai';
import {
  type AgentTool,
  INTERRUPTED_RESULT,
  outcomeOf,
  type ToolOutcome,
} from '../../tools/tool.ts';
import { truncateMiddle } from '../../tools/truncate.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { ModelAnswer, ToolRequest } from '../model/call-model.ts';
import type { SessionModel } from './session-model.ts';
import type { Task, WorkFrame } from './task.ts';
import { TaskFailure } from './task-failure.ts';

/** An agent that works on tasks: instructions, a conversation with the model, and tools. */
export interface WorkingAgent {
  /** The agent named in its frames; undefined if it is the only one. */
  readonly name: string | undefined;
  readonly conversation: Conversation;
  readonly tools: readonly AgentTool[];
  instructions(): string;
}

/** Limits of an agent's work. */
export interface WorkLimits {
  /** Longest result of a tool, in characters, for both client and model. */
  readonly resultChars: number;
}

const FAILED_RESULT = 'The task has failed.';

/** How often the model may continue an answer that was cut at its output limit. */
const MAX_CONTINUATIONS = 3;
const CONTINUE = '[The answer was cut at the output limit. Continue exactly where it stopped.]';

/** Calls the model and runs its tools by turns, until an answer requests no more tools. */
export class AgentLoop {
  /** Text of the incomplete answer. */
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
    this.#tools = Object.fromEntries(
      agent.tools.map(({ name, description, input }) => [
        name,
        tool({ description, inputSchema: input }),
      ]),
    );
  }

  /** Returns the final text. @throws TaskFailure, ModelFailure, or the reason of the task's signal when it aborts */
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
      conversation.ask(CONTINUE);
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
        await this.#task.send(this.#named({ type: 'text_delta', data }));
      },
    });
    conversation.answer(
      answer.message ?? { role: 'assistant', content: '[No answer.]' },
      answer.inputTokens + answer.outputTokens,
    );
    this.unfinished = '';
    if (answer.text !== '') {
      await this.#task.send(
        this.#named({ type: 'message', role: 'assistant', content: answer.text }),
      );
    }
    return answer;
  }

  async #runTool(request: ToolRequest): Promise<void> {
    const { id, name, input } = request;
    await this.#task.send(this.#named({ type: 'tool_call', id, name, arguments: input }));
    const result = ({ text, isError, image }: ToolOutcome): WorkFrame => {
      const content = truncateMiddle(text, this.#limits.resultChars);
      this.#agent.conversation.result({ id, name }, content, isError, image);
      return this.#named({ type: 'tool_result', id, content, is_error: isError });
    };
    let outcome: ToolOutcome;
    try {
      outcome = await this.#outcome(request);
    } catch (error) {
      const text = this.#task.signal.aborted ? INTERRUPTED_RESULT : FAILED_RESULT;
      this.#task.close(result({ text, isError: true }));
      throw error;
    }
    await this.#task.send(result(outcome));
  }

  async #outcome({ name, input, problem }: ToolRequest): Promise<ToolOutcome> {
    const { signal } = this.#task;
    const called = this.#agent.tools.find((candidate) => candidate.name === name);
    if (called === undefined) return { text: `There is no tool ${name} here.`, isError: true };
    if (problem !== undefined) return { text: problem, isError: true };
    try {
      return await called.run(input, signal);
    } catch (error) {
      if (signal.aborted || error instanceof TaskFailure) throw error;
      return outcomeOf(error);
    }
  }

  /** The frame with the agent's name, if it has one. */
  #named(frame: WorkFrame): WorkFrame {
    const { name } = this.#agent;
    return name === undefined ? frame : { ...frame, agent: name };
  }
}
