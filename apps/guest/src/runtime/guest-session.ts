import { isDeepStrictEqual } from 'node:util';
import {
  type AgentLlm,
  type AgentSetup,
  type CaptureRequest,
  type ForwardedFrame,
  FRAME_ERRORS,
} from '@svc/contract';
import type { AgentContext, AgentTask } from '../agents/agent.ts';
import { SessionFiles } from '../files/index.ts';
import type { AgentLink } from '../link/index.ts';
import { AgentLog } from './agent-log.ts';
import { AgentSupervisor } from './agent-supervisor.ts';
import { ClientTools } from './client-tools.ts';
import { agentEnvironment } from './environment.ts';
import { LiveView } from './live-view.ts';
import type { RuntimeOptions } from './options.ts';
import { runTask } from './run-task.ts';
import { SessionOutput } from './session-output.ts';
import { SessionState } from './session-state.ts';
import { ShellCommands } from './shell-commands.ts';
import { TaskQueue } from './task-queue.ts';
import { workingDirectoryOf } from './working-directory.ts';

/** The outgoing half of the link. */
export type SessionLink = Pick<AgentLink, 'frame' | 'state' | 'captured' | 'exited' | 'drained'>;

/** One session: its agent, and the tasks and commands of its clients. */
export class GuestSession {
  readonly #setup: AgentSetup;
  readonly #link: SessionLink;
  readonly #home: string;
  readonly #log: AgentLog;
  readonly #output: SessionOutput;
  readonly #agent: AgentSupervisor;
  readonly #state: SessionState;
  readonly #tasks: TaskQueue;
  readonly #commands: ShellCommands;
  readonly #tools: ClientTools;
  readonly #view: LiveView;
  readonly #ending = new AbortController();
  #env: Readonly<Record<string, string>>;
  /** For agents that start from now on. */
  #llm: AgentLlm;

  constructor(options: RuntimeOptions, setup: AgentSetup, link: SessionLink) {
    const { home, restoreArchive, savedArchive, filesBytes } = options;
    this.#setup = setup;
    this.#link = link;
    this.#home = home;
    this.#env = setup.env;
    this.#llm = llmIn(setup);
    this.#log = new AgentLog(options.logPath);
    this.#output = new SessionOutput(link, this.#log, setup.mode);
    this.#agent = new AgentSupervisor({
      load: () => options.loadAgent(setup.agent),
      context: (conversation) => this.#context(conversation),
      llm: () => this.#llm,
      conversation: setup.conversation,
      onFailed: (error) => this.#output.failed('The agent cannot be started', error),
    });
    this.#tasks = new TaskQueue({
      run: (task, signal) => this.#run(task, signal),
      onCancelled: (task) =>
        this.#output.taskCompleted(task, { status: 'interrupted', result: '' }),
    });
    this.#commands = new ShellCommands({
      context: this.#context(undefined),
      emit: (frame) => link.frame(frame),
      drained: () => link.drained(),
    });
    this.#tools = new ClientTools({
      desktop: options.desktop,
      emit: (frame, image) => link.frame(frame, image?.data),
      drained: () => link.drained(),
      refuse: (id) => this.#output.error('tool_not_available', FRAME_ERRORS.tool_not_available, id),
      onFault: (error) => this.#output.logFailure('A tool of the desktop has failed', error),
      signal: this.#ending.signal,
    });
    this.#view = new LiveView({
      desktop: options.desktop,
      captured: (id, update) => link.captured(id, update),
      onFault: (error) => this.#output.logFailure('The live view has failed', error),
      signal: this.#ending.signal,
    });
    const maxBytes = filesBytes === undefined ? {} : { maxBytes: filesBytes };
    this.#state = new SessionState({
      home,
      restoreFiles: setup.restoreFiles,
      files: new SessionFiles({ home, restoreArchive, savedArchive, ...maxBytes }),
      link,
      output: this.#output,
      conversation: () => this.#agent.conversation(),
      signal: this.#ending.signal,
    });
    void this.#begin();
  }

  /** Carries out a client's request; all results are frames. */
  client(frame: ForwardedFrame): void {
    const named = frame.id === undefined ? {} : { id: frame.id };
    if (frame.type === 'task') {
      if (this.#tasks.add({ prompt: frame.prompt, ...named })) return;
      this.#output.error('busy', 'Eight tasks wait already.', frame.id);
    } else if (frame.type === 'exec') {
      void this.#state.prepared.then(() => this.#commands.run(frame));
    } else if (frame.type === 'interrupt') {
      this.#tasks.interrupt(frame.id);
      if (frame.id !== undefined) this.#commands.interrupt(frame.id);
    } else {
      void this.#tools.run(frame);
    }
  }

  /** Sends pictures of the display as soon as it has changed. */
  capture(request: CaptureRequest): void {
    this.#view.capture(request);
  }

  stopCapture(): void {
    this.#view.stop();
  }

  /** Sets the environment of processes that start from now on, and the model from the next task on. */
  setValues(env: Readonly<Record<string, string>> = this.#env, llm: AgentLlm = this.#llm): void {
    this.#env = env;
    // A worker repeats the values when it reconnects.
    if (!isDeepStrictEqual(llmIn(llm), this.#llm)) this.#llm = llmIn(llm);
  }

  /** Saves the state and sends it to the worker. Never rejects. */
  save(): Promise<void> {
    return this.#state.save();
  }

  /** Ends the agent and every process of the session. */
  async close(): Promise<void> {
    this.#ending.abort(new Error('the runtime ends'));
    await this.#agent.close();
    await this.#log.flushed();
  }

  #context(conversation: string | undefined): AgentContext {
    const { conversation: _first, ...rest } = this.#setup;
    const setup = { ...rest, ...this.#llm };
    return {
      setup: conversation === undefined ? setup : { ...setup, conversation },
      home: this.#home,
      workingDirectory: workingDirectoryOf(this.#home),
      signal: this.#ending.signal,
      emit: (frame) => this.#output.emit(frame),
      drained: () => this.#link.drained(),
      env: () => agentEnvironment(this.#env, this.#home),
      log: (text) => this.#log.append(text),
    };
  }

  /** Whether the agent has a task of its own and exits after it. Any other waits for those of clients. */
  get #hasOwnTask(): boolean {
    const { mode, task } = this.#setup;
    return mode === 'one_shot' && task !== undefined;
  }

  /** Starts the agent, and a one-shot agent's only task. */
  async #begin(): Promise<void> {
    await this.#state.prepared;
    const { mode, task } = this.#setup;
    if (mode === 'one_shot' && task !== undefined) {
      this.#tasks.add({ prompt: task });
      return;
    }
    const agent = await this.#agent.started();
    if (agent === undefined && mode === 'one_shot') this.#link.exited(1);
  }

  async #run(task: AgentTask, signal: AbortSignal): Promise<void> {
    await this.#state.prepared;
    this.#output.taskStarted(task);
    const outcome = await runTask(this.#agent, task, signal, (error) =>
      this.#output.failed('The agent has failed', error),
    );
    // A client that sees a completed task may rely on its state being saved.
    await this.save();
    this.#output.taskCompleted(task, outcome);
    if (this.#hasOwnTask) {
      await this.#log.flushed();
      this.#link.exited(outcome.status === 'completed' ? 0 : 1);
    }
    await this.#link.drained();
  }
}

function llmIn({ model, dialect, gateway }: AgentLlm): AgentLlm {
  return { model, dialect, gateway };
}
