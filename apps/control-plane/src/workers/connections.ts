import { pinCertificate } from '@svc/service-kit/tls';
import { Agent } from 'undici';
import type { WorkerAddress } from './worker-address.ts';

const MOST_WORKERS = 1024;
const CONNECT_TIMEOUT_MS = 5_000;

/**
 * The most connections to one worker for each kind of call; further callers queue. No kind can take those of another: `work`
 * lasts as long as customers and their guests want (commands, file transfers, pauses, logs, …), `control` as long as the worker
 * needs (creations, lists, …), and a deletion, of which a sandbox has at most one, must pass whatever else goes on. Work has no
 * bound here, since whoever waited for others would wait for long: `TenantOperations` refuses what is too much.
 */
const MOST_CONNECTIONS = { work: null, control: 512, deletion: 1024 } as const;

/** A kind of call to a worker. */
export type CallKind = keyof typeof MOST_CONNECTIONS;

interface Entry {
  readonly agents: Readonly<Record<CallKind, Agent>>;
  readonly url: string;
  readonly certificate: string;
}

/** Keeps connection pools for each worker, pinned to the certificate that the worker registered. */
export class WorkerConnections {
  readonly #entries = new Map<string, Entry>();

  /** The pool of this worker for a kind of call; a new one after the worker registered another address or certificate. */
  agentFor(worker: WorkerAddress, kind: CallKind): Agent {
    const known = this.#entries.get(worker.worker_id);
    if (known?.url === worker.url && known.certificate === worker.certificate) {
      return known.agents[kind];
    }
    this.#retire(worker.worker_id);
    if (this.#entries.size >= MOST_WORKERS) this.#retire(this.#entries.keys().next().value);
    const { url, certificate } = worker;
    const agents = {
      work: createPinnedAgent(certificate, MOST_CONNECTIONS.work),
      control: createPinnedAgent(certificate, MOST_CONNECTIONS.control),
      deletion: createPinnedAgent(certificate, MOST_CONNECTIONS.deletion),
    };
    this.#entries.set(worker.worker_id, { agents, url, certificate });
    return agents[kind];
  }

  /** Cuts every connection. */
  async close(): Promise<void> {
    const agents = [...this.#entries.values()].flatMap((entry) => Object.values(entry.agents));
    this.#entries.clear();
    await Promise.all(agents.map((agent) => agent.destroy()));
  }

  /** Closes the pools of a worker once their running requests have ended. */
  #retire(workerId: string | undefined): void {
    if (workerId === undefined) return;
    const entry = this.#entries.get(workerId);
    this.#entries.delete(workerId);
    for (const agent of Object.values(entry?.agents ?? {})) agent.close().catch(() => undefined);
  }
}

function createPinnedAgent(certificate: string, connections: number | null): Agent {
  return new Agent({
    connections,
    connect: { timeout: CONNECT_TIMEOUT_MS, ...pinCertificate(certificate) },
  });
}
