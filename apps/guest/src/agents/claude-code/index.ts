import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { sharedTools } from '@svc/contract';
import type { AgentContext, AgentSession, StartAgent } from '../agent.ts';
import { serveTools, type ToolServer } from '../tool-server/index.ts';
import { restoreConversation } from '../vendor-cli/conversation.ts';
import type { VendorCli } from '../vendor-cli/dialogue.ts';
import { cliEnvironment } from '../vendor-cli/environment.ts';
import { hasTranscript } from '../vendor-cli/transcript.ts';
import { DEADLINES, type Deadlines, VendorSession } from '../vendor-cli/vendor-session.ts';
import { ClaudeCodeDialogue } from './claude-dialogue.ts';
import {
  CLAUDE_CODE_OPTIONS,
  type ClaudeCodeOptions,
  claudeCodeArgs,
  claudeCodeEnvironment,
} from './command.ts';

/** Starts Anthropic's Claude Code, as installed in the image. */
export const startClaudeCode: StartAgent = (context) => openClaudeCode(context);

/** Like {@link startClaudeCode}, with other options or deadlines. */
export async function openClaudeCode(
  context: AgentContext,
  options: Partial<ClaudeCodeOptions> = {},
  deadlines: Partial<Deadlines> = {},
): Promise<AgentSession> {
  const configDirectory = join(context.home, '.claude');
  const all = { ...CLAUDE_CODE_OPTIONS, ...options };
  const cli = await ClaudeCode.create(context, configDirectory, all);
  return new VendorSession(context, cli, { ...DEADLINES, ...deadlines });
}

class ClaudeCode implements VendorCli {
  readonly name = 'Claude Code';
  readonly mark = randomUUID();
  readonly tools: ToolServer | undefined;
  readonly #context: AgentContext;
  readonly #configDirectory: string;
  readonly #options: ClaudeCodeOptions;
  #session: string;

  private constructor(
    context: AgentContext,
    configDirectory: string,
    options: ClaudeCodeOptions,
    session: string,
    tools: ToolServer | undefined,
  ) {
    this.tools = tools;
    this.#context = context;
    this.#configDirectory = configDirectory;
    this.#options = options;
    this.#session = session;
  }

  static async create(
    context: AgentContext,
    configDirectory: string,
    options: ClaudeCodeOptions,
  ): Promise<ClaudeCode> {
    const transcripts = transcriptsIn(configDirectory);
    const earlier = await restoreConversation(context, transcripts);
    const continues = earlier !== undefined && hasTranscript(transcripts, earlier);
    if (context.setup.conversation !== undefined && !continues) {
      context.log(
        'The transcript of the earlier conversation is missing; a new conversation starts.\n',
      );
    }
    const session = continues ? earlier : randomUUID();
    const tools = await serveTools(context, options.machine);
    return new ClaudeCode(context, configDirectory, options, session, tools);
  }

  environment(): Record<string, string> {
    const settings = claudeCodeEnvironment(
      this.#context,
      this.#configDirectory,
      this.#options,
      this.tools,
    );
    return cliEnvironment(this.#context, settings, this.mark);
  }

  async open(env: Record<string, string>): Promise<ClaudeCodeDialogue> {
    const { home, workingDirectory, signal, setup } = this.#context;
    const exists = hasTranscript(this.transcripts, this.#session);
    return ClaudeCodeDialogue.start(
      { home, workingDirectory, signal, env: () => env },
      {
        binary: this.#options.binary,
        args: claudeCodeArgs(
          setup.model,
          { id: this.#session, exists },
          sharedTools(setup.app),
          this.tools,
        ),
        onSession: (session) => {
          this.#session = session;
        },
        log: (text) => this.#context.log(text),
        drained: () => this.#context.drained(),
      },
    );
  }

  get transcripts(): string {
    return transcriptsIn(this.#configDirectory);
  }

  get conversation(): string {
    return this.#session;
  }
}

function transcriptsIn(configDirectory: string): string {
  return join(configDirectory, 'projects');
}
