import type { AgentSetup } from '@svc/contract';
import { type ModelServer, type Rule, startModelServer } from '@svc/model-server';
import { expect, vi } from 'vitest';
import type { AgentSession, AgentTask, TaskOutcome } from '../../src/agents/agent.ts';
import type { ToolMachine } from '../../src/agents/tools/template-tools.ts';
import { type AgentWorld, createAgentWorld } from './agent-world.ts';
import type { CliDriver } from './cli-driver.ts';
import { type ForwardProxy, startForwardProxy } from './forward-proxy.ts';
import { installClis } from './install-clis.ts';
import { childrenOf } from './running.ts';

/** Time limit of a CLI's turn, on a busy machine. */
export const TURN_MS = 120_000;
/** Time limit of an interrupt, long enough for a busy machine; after it the CLI is ended. */
const INTERRUPT_MS = 60_000;
const NEVER = new AbortController().signal;

/** A session with a vendor's real CLI and a scripted model. */
export class TestCli implements AsyncDisposable {
  readonly driver: CliDriver;
  readonly binary: string;
  readonly server: ModelServer;
  readonly proxy: ForwardProxy;
  readonly world: AgentWorld;
  #session: AgentSession | undefined;

  private constructor(
    driver: CliDriver,
    binary: string,
    server: ModelServer,
    proxy: ForwardProxy,
    world: AgentWorld,
  ) {
    this.driver = driver;
    this.binary = binary;
    this.server = server;
    this.proxy = proxy;
    this.world = world;
  }

  /** Installs the CLI if necessary, which takes up to `INSTALL_MS`. */
  static async start(driver: CliDriver): Promise<TestCli> {
    const binary = driver.program(await installClis());
    await using resources = new AsyncDisposableStack();
    const server = resources.use(await startModelServer({ script: { rules: [] } }));
    const proxy = resources.use(await startForwardProxy());
    const { agent, model, gatewayPath } = driver;
    const gateway = `${server.url}${gatewayPath}`;
    const world = resources.use(await createAgentWorld(agent, model, gateway));
    const cli = new TestCli(driver, binary, server, proxy, world);
    cli.reset();
    await cli.reopen();
    resources.move();
    return cli;
  }

  get session(): AgentSession {
    if (this.#session === undefined) throw new Error('no session is open');
    return this.#session;
  }

  /** Forgets all frames, and resets the bundle values. */
  reset(): void {
    this.world.frames.length = 0;
    // A key and a proxy of the bundle's own must not redirect the CLI away from the gateway.
    this.world.env = {
      ...this.proxy.env,
      [this.driver.keyVariable]: 'sk-of-a-bundle',
      BUNDLE_TOKEN: 'first',
    };
  }

  /** Closes the session and opens another, by default in a template without a browser and a desktop. */
  async reopen(setup: Partial<AgentSetup> = {}, machine: ToolMachine = {}): Promise<void> {
    await this.#session?.close();
    const deadlines = { interrupt: INTERRUPT_MS };
    const { driver, binary, world } = this;
    this.#session = await driver.open(world.context(setup), { binary, machine }, deadlines);
  }

  /** Replaces the model's script; without rules the model repeats the user's message. */
  script(...rules: Rule[]): void {
    this.server.setScript({ rules });
  }

  /** Has the model call a command at the next prompt, and then reply as in `done`. */
  scriptCommand(command: string, done = { when: { tool: '' }, reply: { text: 'done' } }): void {
    this.script(done, { reply: { tool_calls: [this.driver.shellCall(command)] } });
  }

  run(prompt: string, task: Omit<AgentTask, 'prompt'> = {}): Promise<TaskOutcome> {
    return this.session.runTask({ prompt, ...task }, NEVER);
  }

  /** Runs a task and interrupts it as soon as `isReady`. Fails when the CLI loses its process over it. */
  async interrupt(prompt: string, isReady: () => boolean): Promise<TaskOutcome> {
    const abort = new AbortController();
    const running = this.session.runTask({ prompt }, abort.signal);
    await vi.waitUntil(isReady, { timeout: TURN_MS });
    const processes = await this.processes();
    abort.abort();
    const outcome = await running;
    expect(await this.processes()).toEqual(processes);
    return outcome;
  }

  /** Process ids of the CLI: one, during a task and after it. */
  processes(): Promise<string[]> {
    return childrenOf(this.binary, this.world.home);
  }

  /** Returns a function that tells whether the model has had a request since this call. */
  watchRequests(): () => boolean {
    const { length } = this.server.requests;
    return () => this.server.requests.length > length;
  }

  /** The last request to the model, with the whole conversation. */
  lastRequest(): string {
    return JSON.stringify(this.server.requests.at(-1)?.body);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#session?.close();
    await this.world[Symbol.asyncDispose]();
    await this.server.close();
    await this.proxy[Symbol.asyncDispose]();
  }
}
