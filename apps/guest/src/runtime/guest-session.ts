import type { AgentFrame, AgentSetup, ClientFrame } from '@svc/contract';
import type { AgentContext, AgentTask, TaskOutcome } from '../agents/agent.ts';
import { FilesError, SessionFiles } from '../files/index.ts';
import type { AgentLink } from '../link/index.ts';
import { AgentHolder } from './agent-holder.ts';
import { AgentLog } from './agent-log.ts';
import { agentEnvironment } from './environment.ts';
import { logLine } from './frame-log.ts';
import type { RuntimeOptions } from './options.ts';
import { runTask } from './run-task.ts';
import { ShellCommands } from './shell-commands.ts';
import { TaskQueue } from './task-queue.ts';
import { makeWorkingDirectory, workingDirectoryOf } from './working-directory.ts';

/** Longest `result` of a task, in characters. */
const MAX_RESULT = 1024 * 1024;

/** What a session says to the worker. */
export type SessionLine = Pick<AgentLink, 'frame' | 'state' | 'exited' | 'drained'>;

/** One session: its agent, the tasks and commands of its clients, and its state. */
export class GuestSession {
  readonly #setup: AgentSetup;
  readonly #line: SessionLine;
  readonly #home: string;
  readonly #workingDirectory: string;
  readonly #log: AgentLog;
  readonly #files: SessionFiles;
  readonly #agent: AgentHolder;
  readonly #tasks: TaskQueue;
  readonly #commands: ShellCommands;
  readonly #ending = new AbortController();
  /** Settles when the agent's files are there. */
  readonly #prepared: Promise<void>;
  #env: Readonly<Record<string, string>>;
  #saving: Promise<void> = Promise.resolve();

  constructor(options: RuntimeOptions, setup: AgentSetup, line: SessionLine) {
    this.#setup = setup;
    this.#line = line;
    this.#home = options.home;
    this.#workingDirectory = workingDirectoryOf(options.home);
    this.#env = setup.env;
    this.#log = new AgentLog(options.logPath);
    this.#files = new SessionFiles({
      home: options.home,
      restoreArchive: options.restoreArchive,
      savedArchive: options.savedArchive,
      ...(options.filesBytes === undefined ? {} : { maxBytes: options.filesBytes }),
    });
    this.#agent = new AgentHolder({
      load: () => options.loadAgent(setup.agent),
      context: (conversation) => this.#context(conversation),
      conversation: setup.conversation,
      onFailed: (error) => this.#failed('The agent cannot be started', error),
    });
    this.#tasks = new TaskQueue({
      run: (task, signal) => this.#run(task, signal),
      onTakenBack: (task) => this.#completed(task, { status: 'interrupted', result: '' }),
    });
    this.#commands = new ShellCommands({
      context: this.#context(undefined),
      emit: (frame) => line.frame(frame),
      drained: () => line.drained(),
    });
    this.#prepared = this.#prepare();
    void this.#begin();
  }

  /** Does what a client asks; everything that comes of it is a frame. */
  client(frame: Exclude<ClientFrame, { type: 'ping' }>): void {
    const named = frame.id === undefined ? {} : { id: frame.id };
    if (frame.type === 'task') {
      if (this.#tasks.add({ prompt: frame.prompt, ...named })) return;
      this.#emitError('busy', 'Eight tasks wait already.', frame.id);
    } else if (frame.type === 'exec') {
      void this.#prepared.then(() => this.#commands.run(frame));
    } else if (frame.type === 'interrupt') {
      this.#tasks.interrupt(frame.id);
      if (frame.id !== undefined) this.#commands.interrupt(frame.id);
    } else {
      this.#emitError('tool_not_available', 'This session has no desktop to control.', frame.id);
    }
  }

  /** New values for processes that start from now on. */
  setEnv(values: Readonly<Record<string, string>>): void {
    this.#env = values;
  }

  /** Saves the state and tells the worker; saves go one after the other. Never rejects. */
  save(): Promise<void> {
    this.#saving = this.#saving.then(() => this.#save());
    return this.#saving;
  }

  /** Ends the agent and every process of the session. */
  async close(): Promise<void> {
    this.#ending.abort(new Error('the runtime ends'));
    await this.#agent.close();
    await this.#log.flushed();
  }

  #context(conversation: string | undefined): AgentContext {
    const { conversation: _first, ...setup } = this.#setup;
    return {
      setup: conversation === undefined ? setup : { ...setup, conversation },
      home: this.#home,
      workingDirectory: this.#workingDirectory,
      signal: this.#ending.signal,
      emit: (frame) => this.#emit(frame),
      drained: () => this.#line.drained(),
      env: () => agentEnvironment(this.#env, this.#home),
      log: (text) => this.#log.append(text),
    };
  }

  async #prepare(): Promise<void> {
    try {
      if (this.#setup.restoreFiles) await this.#files.restore(this.#ending.signal);
      await makeWorkingDirectory(this.#home);
    } catch (error) {
      const message = error instanceof FilesError ? error.message : 'The files cannot be prepared.';
      this.#failed(message, error);
    }
  }

  /** Starts the agent, and a one-shot agent's only task. */
  async #begin(): Promise<void> {
    await this.#prepared;
    const { mode, task } = this.#setup;
    if (mode === 'one_shot' && task !== undefined) {
      this.#tasks.add({ prompt: task });
      return;
    }
    const agent = await this.#agent.running();
    if (agent === undefined && mode === 'one_shot') this.#line.exited(1);
  }

  async #run(task: AgentTask, signal: AbortSignal): Promise<void> {
    await this.#prepared;
    const named = task.id === undefined ? {} : { id: task.id };
    this.#line.frame({ type: 'task_started', ...named });
    const outcome = await runTask(this.#agent, task, signal, (error) =>
      this.#failed('The agent has failed', error),
    );
    // Who sees a task completed may rely on its state being kept.
    await this.save();
    this.#completed(task, outcome);
    if (this.#setup.mode === 'one_shot') {
      await this.#log.flushed();
      this.#line.exited(outcome.status === 'completed' ? 0 : 1);
    }
    await this.#line.drained();
  }

  #emit(frame: AgentFrame): void {
    const line = logLine(frame, this.#setup.mode);
    if (line !== undefined) this.#log.append(line);
    this.#line.frame(frame);
  }

  #completed({ id }: AgentTask, { status, result }: TaskOutcome): void {
    const frame: AgentFrame = {
      type: 'task_completed',
      status,
      result: result.slice(0, MAX_RESULT),
    };
    this.#line.frame(id === undefined ? frame : { ...frame, id });
  }

  async #save(): Promise<void> {
    await this.#prepared;
    const files = await this.#saveFiles();
    let conversation = '';
    try {
      conversation = this.#agent.conversation();
    } catch (error) {
      this.#failed('The agent cannot tell its conversation', error);
    }
    if (this.#line.state(conversation, files)) return;
    this.#emitError('state_not_saved', 'The conversation is too large and was not saved.');
  }

  async #saveFiles(): Promise<boolean> {
    try {
      return await this.#files.save(this.#ending.signal);
    } catch (error) {
      this.#log.append(`the files were not saved: ${describe(error)}\n`);
      const message =
        error instanceof FilesError ? error.message : "The agent's files could not be saved.";
      this.#emitError('state_not_saved', message);
      return false;
    }
  }

  #failed(what: string, error: unknown): void {
    this.#log.append(`${what}: ${describe(error)}\n`);
    this.#emitError('agent_failed', `${what}; its log says more.`);
  }

  #emitError(code: string, message: string, id?: string): void {
    const frame: AgentFrame = { type: 'error', code, message };
    this.#line.frame(id === undefined ? frame : { ...frame, id });
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? '' : `\n${JSON.stringify(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}
