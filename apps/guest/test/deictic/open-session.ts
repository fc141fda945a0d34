import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AgentFrame, AgentSetup } from '@svc/contract';
import { type ModelServer, type Rule, startModelServer } from '@svc/model-server';
import { vi } from 'vitest';
import type { TaskOutcome } from '../../src/agents/agent.ts';
import { Deictic } from '../../src/agents/deictic/deictic.ts';
import { DEFAULT_OPTIONS, type DeicticOptions } from '../../src/agents/deictic/options.ts';

/** An agent with a scripted model and a directory of its own. Disposing of it removes everything. */
export interface TestSession extends AsyncDisposable {
  readonly server: ModelServer;
  readonly frames: AgentFrame[];
  readonly logged: string[];
  readonly directory: string;
  readonly env: Record<string, string>;
  /** The current agent. */
  readonly agent: Deictic;
  run(prompt: string, signal?: AbortSignal): Promise<TaskOutcome>;
  /** Continues with another agent, from this one's record or a given one. */
  resume(setup?: Partial<AgentSetup>): void;
  /** Settles when a frame of this type that `matches` has arrived. */
  seen(type: AgentFrame['type'], matches?: (frame: AgentFrame) => boolean): Promise<AgentFrame>;
  ofType<T extends AgentFrame['type']>(type: T): Extract<AgentFrame, { type: T }>[];
}

/** Short pauses, since tests wait for the end of retries. */
const TEST_OPTIONS: DeicticOptions = { ...DEFAULT_OPTIONS, pauseMs: 1, maxPauseMs: 20 };

export async function openSession(
  rules: Rule[],
  overrides: {
    readonly setup?: Partial<AgentSetup>;
    readonly options?: Partial<DeicticOptions>;
    drained?(): Promise<void>;
  } = {},
): Promise<TestSession> {
  const server = await startModelServer({ script: { rules } });
  const directory = await mkdtemp(join(tmpdir(), 'deictic-'));
  const runtime = new AbortController();
  const frames: AgentFrame[] = [];
  const logged: string[] = [];
  const env: Record<string, string> = { PATH: process.env.PATH ?? '', HOME: directory };
  const setup: AgentSetup = {
    mode: 'session',
    agent: 'deictic',
    model: 'claude-test',
    dialect: 'anthropic',
    gateway: server.url,
    wireVersion: 2,
    env: {},
    restoreFiles: false,
    ...overrides.setup,
  };
  const start = (own: AgentSetup) =>
    new Deictic(
      {
        setup: own,
        emit: (frame) => frames.push(frame),
        drained: overrides.drained ?? (async () => undefined),
        env: () => env,
        log: (text) => logged.push(text),
        home: directory,
        workingDirectory: directory,
        signal: runtime.signal,
      },
      { ...TEST_OPTIONS, ...overrides.options },
    );
  let agent = start(setup);
  return {
    server,
    frames,
    logged,
    directory,
    env,
    get agent() {
      return agent;
    },
    run: (prompt, signal = new AbortController().signal) => agent.runTask({ prompt }, signal),
    resume(changes = {}) {
      agent = start({ ...setup, conversation: agent.conversation(), ...changes });
    },
    seen: (type, matches = () => true) =>
      vi.waitFor(
        () => {
          const frame = frames.find((candidate) => candidate.type === type && matches(candidate));
          if (frame === undefined) throw new Error(`no ${type} frame yet`);
          return frame;
        },
        { timeout: 20_000, interval: 10 },
      ),
    ofType: <T extends AgentFrame['type']>(type: T) =>
      frames.filter((frame): frame is Extract<AgentFrame, { type: T }> => frame.type === type),
    async [Symbol.asyncDispose]() {
      await agent.close();
      runtime.abort();
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
