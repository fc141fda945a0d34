import { setTimeout as sleep } from 'node:timers/promises';
import type { Script } from '@svc/model-server';
import type { SandboxRecord, SessionConnection, SvcClient } from '@svc/sdk';
import type { FleetLab } from './fleet-lab.ts';

/** Time for a task, after which the customer gives it again: its sandbox may be gone. */
const TASK_MS = 10_000;
const POLL_MS = 50;
/** A customer stays attached, however long a fault lasts. */
const RECONNECTS = 1_000;

/** What the scripted model answers to the tasks of customers. */
export const CUSTOMER_SCRIPT: Script = {
  rules: [{ when: { user: 'task (\\d+) of' }, reply: { text: 'did $1' } }],
};

/**
 * A customer who gives one task after the other to the agent of a session, over one connection, and remembers
 * everything that was acknowledged.
 */
export class Customer implements AsyncDisposable {
  readonly sessionId: string;
  readonly #client: SvcClient;
  readonly #connection: SessionConnection;
  /** The prompts of the completed tasks. */
  readonly #acknowledged: string[] = [];
  readonly #completed = new Set<string>();
  readonly #numbers: number[] = [];
  readonly #stop = new AbortController();
  readonly #ended: Promise<unknown>;
  #lastAt = performance.now();
  #longestGapMs = 0;

  private constructor(client: SvcClient, sessionId: string, connection: SessionConnection) {
    this.#client = client;
    this.sessionId = sessionId;
    this.#connection = connection;
    this.#ended = Promise.all([this.#read(), this.#work()]);
    // Reported by `problems`.
    this.#ended.catch((error) => this.#stop.abort(error));
  }

  static async start(client: SvcClient): Promise<Customer> {
    const session = await client.sessions.create({
      agent: { kind: 'deictic' },
      app: { id: 'fleet-lab' },
      template: 'standard',
      llm: { vendor: 'anthropic', model: 'claude-scripted' },
      secrets: ['llm'],
      user_id: 'lab',
    });
    const connection = client.sessions.connect(session, { maxReconnects: RECONNECTS });
    return new Customer(client, session.chat_session_id, connection);
  }

  /** The number of tasks that were acknowledged as complete. */
  get acknowledged(): number {
    return this.#acknowledged.length;
  }

  /** The longest time between two acknowledged tasks since the last call, in ms. */
  takeLongestGapMs(): number {
    const longest = this.#longestGapMs;
    this.#longestGapMs = 0;
    return longest;
  }

  /** The record of the sandbox in which the session runs. */
  async sandbox(): Promise<SandboxRecord> {
    const { vm_id: vmId } = await this.#client.sessions.get(this.sessionId);
    return this.#client.sandboxes.get(String(vmId));
  }

  /** What was acknowledged and is not there, and what came twice. Empty when all is well. */
  problems({ model }: FleetLab): string[] {
    const { signal } = this.#stop;
    const problems = signal.aborted ? [`the customer gave up: ${signal.reason}`] : [];
    const repeated = this.#numbers.filter((seq, index) => seq <= (this.#numbers[index - 1] ?? 0));
    if (repeated.length > 0) problems.push(`frame numbers came twice: ${repeated.join(', ')}`);
    const bodies = model.requests.map(({ body }) => JSON.stringify(body ?? ''));
    const known = bodies.findLast((body) => body.includes(this.sessionId)) ?? '';
    // The last one may not have been asked about yet.
    const lost = this.#acknowledged.slice(0, -1).filter((prompt) => !known.includes(prompt));
    if (lost.length > 0) problems.push(`the agent has forgotten ${lost.join('; ')}`);
    return problems;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#stop.signal.aborted) this.#stop.abort(new Error('the lab ended'));
    await this.#connection.close();
    await this.#ended.catch(() => undefined);
    await this.#client.sessions.delete(this.sessionId);
  }

  async #read(): Promise<void> {
    for await (const frame of this.#connection) {
      if ('seq' in frame && frame.seq !== undefined) this.#numbers.push(frame.seq);
      if (frame.type === 'task_completed' && frame.status === 'completed') {
        this.#completed.add(String(frame.id));
      }
    }
    this.#stop.signal.throwIfAborted();
    throw new Error('the session ended');
  }

  async #work(): Promise<void> {
    const { signal } = this.#stop;
    for (let task = 1; !signal.aborted; task += 1) {
      const prompt = `task ${task} of ${this.sessionId}.`;
      for (let attempt = 1; !(await this.#give(`${task}-${attempt}`, prompt)); attempt += 1) {
        if (signal.aborted) return;
      }
      const now = performance.now();
      this.#longestGapMs = Math.max(this.#longestGapMs, now - this.#lastAt);
      this.#lastAt = now;
      this.#acknowledged.push(prompt);
    }
  }

  /** Gives a task once. Resolves with whether it was completed in time. */
  async #give(id: string, prompt: string): Promise<boolean> {
    const { signal } = this.#stop;
    this.#connection.task(prompt, { id });
    const deadline = performance.now() + TASK_MS;
    while (!this.#completed.has(id)) {
      if (signal.aborted || performance.now() > deadline) return false;
      await sleep(POLL_MS);
    }
    return true;
  }
}
