import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sharedTools } from '@svc/contract';
import type { AgentContext, AgentSession, StartAgent } from '../agent.ts';
import { giveToOwner } from '../processes/process-owner.ts';
import { serveTools, type ToolServer } from '../tool-server/index.ts';
import { restoreConversation } from '../vendor-cli/conversation.ts';
import type { VendorCli } from '../vendor-cli/dialogue.ts';
import { cliEnvironment } from '../vendor-cli/environment.ts';
import { DEADLINES, type Deadlines, VendorSession } from '../vendor-cli/vendor-session.ts';
import { CodexDialogue } from './codex-dialogue.ts';
import { CODEX_OPTIONS, type CodexOptions, codexArgs, codexEnvironment } from './command.ts';
import { writeRequirements } from './requirements.ts';
import { ThreadMemory } from './thread-memory.ts';

/** Starts OpenAI's codex, as installed in the image. */
export const startCodex: StartAgent = (context) => openCodex(context);

/** Like {@link startCodex}, with other options or deadlines. */
export async function openCodex(
  context: AgentContext,
  options: Partial<CodexOptions> = {},
  deadlines: Partial<Deadlines> = {},
): Promise<AgentSession> {
  const home = join(context.home, '.codex');
  const databases = await mkdtemp(join(tmpdir(), 'svc-codex-'));
  await mkdir(home, { recursive: true });
  await giveToOwner(context.home, [home, databases]);
  const earlier = await restoreConversation(context, transcriptsIn(home));
  const all = { ...CODEX_OPTIONS, ...options };
  const tools = await serveTools(context, all.machine);
  const cli = new Codex({ context, home, databases, earlier, options: all, tools });
  const session = new VendorSession(context, cli, { ...DEADLINES, ...deadlines });
  return {
    runTask: (task, signal) => session.runTask(task, signal),
    conversation: () => session.conversation(),
    close: async () => {
      await session.close();
      await rm(databases, { recursive: true, force: true });
    },
  };
}

class Codex implements VendorCli {
  readonly name = 'codex';
  readonly mark = randomUUID();
  readonly tools: ToolServer | undefined;
  readonly #context: AgentContext;
  readonly #home: string;
  readonly #databases: string;
  readonly #options: CodexOptions;
  readonly #memory: ThreadMemory;

  constructor(parts: {
    readonly context: AgentContext;
    readonly home: string;
    readonly databases: string;
    readonly earlier: string | undefined;
    readonly options: CodexOptions;
    readonly tools: ToolServer | undefined;
  }) {
    const { context, earlier } = parts;
    this.tools = parts.tools;
    this.#context = context;
    this.#home = parts.home;
    this.#databases = parts.databases;
    this.#options = parts.options;
    const { resumeId } = context.setup;
    this.#memory = new ThreadMemory(earlier ?? resumeId, context.log.bind(context));
  }

  environment(): Record<string, string> {
    const settings = codexEnvironment(this.#home, this.#databases, this.tools);
    return cliEnvironment(this.#context, settings, this.mark);
  }

  async open(env: Record<string, string>): Promise<CodexDialogue> {
    const { home, workingDirectory, signal, setup } = this.#context;
    const tools = sharedTools(setup.app);
    // At each start: an agent with a shell may have removed it.
    if (tools !== undefined) {
      await writeRequirements(this.#options.requirements, tools, this.tools?.url);
    }
    return CodexDialogue.start(
      { home, workingDirectory, signal, env: () => env },
      {
        command: this.#options.binary,
        args: codexArgs(this.#context, this.#options, tools, this.tools),
      },
      setup.model,
      this.#memory,
      {
        log: (text) => this.#context.log(text),
        drained: () => this.#context.drained(),
      },
    );
  }

  get transcripts(): string {
    return transcriptsIn(this.#home);
  }

  get conversation(): string | undefined {
    return this.#memory.thread;
  }
}

function transcriptsIn(home: string): string {
  return join(home, 'sessions');
}
