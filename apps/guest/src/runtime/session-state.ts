import { FilesError, type SessionFiles } from '../files/index.ts';
import type { AgentLink } from '../link/index.ts';
import type { SessionOutput } from './session-output.ts';
import { makeWorkingDirectory } from './working-directory.ts';

const INCOMPLETE =
  'Files are not saved, because not all saved files of the session could be brought back when it started. Copy what you need, and resume the session again.';

export interface SessionStateOptions {
  readonly home: string;
  readonly restoreFiles: boolean;
  readonly files: SessionFiles;
  readonly link: Pick<AgentLink, 'state'>;
  readonly output: SessionOutput;
  /** The agent's record of the conversation. May throw. */
  readonly conversation: () => string;
  /** Aborts when the runtime ends. */
  readonly signal: AbortSignal;
}

/** The part of a session that survives its sandbox: the agent's files and its conversation. */
export class SessionState {
  /** Settles (never rejects) when the agent's files are in place. */
  readonly prepared: Promise<void>;
  readonly #options: SessionStateOptions;
  /** Whether files of the session are missing. Those that are saved must stay: what is here would replace them. */
  #isIncomplete = false;
  #saving: Promise<void> = Promise.resolve();

  constructor(options: SessionStateOptions) {
    this.#options = options;
    this.prepared = this.#prepare();
  }

  /** Saves the state and sends it to the worker. Saves run one at a time. Never rejects. */
  save(): Promise<void> {
    this.#saving = this.#saving.then(() => this.#save());
    return this.#saving;
  }

  async #prepare(): Promise<void> {
    const { home, restoreFiles, files, output, signal } = this.#options;
    try {
      if (restoreFiles) {
        this.#isIncomplete = true;
        await files.restore(signal);
        this.#isIncomplete = false;
      }
      await makeWorkingDirectory(home);
    } catch (error) {
      const message = error instanceof FilesError ? error.message : 'The files cannot be prepared.';
      output.failed(message, error);
    }
  }

  async #save(): Promise<void> {
    await this.prepared;
    const { link, output } = this.#options;
    const files = await this.#saveFiles();
    let conversation = '';
    try {
      conversation = this.#options.conversation();
    } catch (error) {
      output.failed('The agent cannot tell its conversation', error);
    }
    if (link.state(conversation, files)) return;
    output.error('state_not_saved', 'The conversation is too large and was not saved.');
  }

  async #saveFiles(): Promise<boolean> {
    const { files, output, signal } = this.#options;
    if (this.#isIncomplete) {
      output.error('state_not_saved', INCOMPLETE);
      return false;
    }
    try {
      return await files.save(signal);
    } catch (error) {
      output.logFailure('the files were not saved', error);
      const message =
        error instanceof FilesError ? error.message : "The agent's files could not be saved.";
      output.error('state_not_saved', message);
      return false;
    }
  }
}
