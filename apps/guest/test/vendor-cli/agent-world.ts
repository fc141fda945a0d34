import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Agent, AgentFrame, AgentSetup } from '@svc/contract';
import type { AgentContext } from '../../src/agents/agent.ts';

/** Codex warns about a home below /tmp. */
const PARENT = '/var/tmp';

/** A home directory for agents, and a record of their output. */
export interface AgentWorld extends AsyncDisposable {
  readonly home: string;
  /** Frames of all its agents, oldest first. */
  readonly frames: AgentFrame[];
  /** The agents' log. */
  readonly log: () => string;
  /** Bundle values for processes that start from now on. */
  env: Record<string, string>;
  context(setup?: Partial<AgentSetup>): AgentContext;
  /** Texts of the frames of one type, in order. */
  texts(type: 'text_delta' | 'message' | 'tool_result'): string[];
}

export async function createAgentWorld(
  agent: Agent,
  model: string,
  gateway: string,
): Promise<AgentWorld> {
  const home = await mkdtemp(join(PARENT, 'svc-agent-'));
  const workingDirectory = join(home, 'work');
  await mkdir(workingDirectory);
  const ending = new AbortController();
  let log = '';
  const world: AgentWorld = {
    home,
    frames: [],
    log: () => log,
    env: {},
    context: (setup = {}) => ({
      setup: {
        mode: 'session',
        agent,
        model,
        dialect: agent === 'codex' ? 'openai' : 'anthropic',
        gateway,
        wireVersion: 1,
        env: {},
        restoreFiles: false,
        ...setup,
      },
      emit: (frame) => void world.frames.push(frame),
      drained: () => Promise.resolve(),
      env: () => ({ PATH: process.env.PATH ?? '/usr/bin:/bin', HOME: home, ...world.env }),
      log: (text) => {
        log += text;
      },
      home,
      workingDirectory,
      signal: ending.signal,
    }),
    texts: (type) => world.frames.flatMap((frame) => textOf(frame, type)),
    [Symbol.asyncDispose]: async () => {
      ending.abort();
      await rm(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
    },
  };
  return world;
}

function textOf(frame: AgentFrame, type: AgentFrame['type']): string[] {
  if (frame.type !== type) return [];
  if (frame.type === 'text_delta') return [frame.data];
  return frame.type === 'message' || frame.type === 'tool_result' ? [frame.content] : [];
}
