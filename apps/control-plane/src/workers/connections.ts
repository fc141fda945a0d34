import { pinCertificate } from '@svc/service-kit/tls';
import { Agent } from 'undici';
import type { WorkerAddress } from './worker-address.ts';

const MOST_WORKERS = 1024;
/** Long commands and transfers each hold one; more callers than this wait for their turn. */
const MOST_CONNECTIONS_PER_WORKER = 1024;
const CONNECT_TIMEOUT_MS = 5_000;

interface Entry {
  readonly agent: Agent;
  readonly url: string;
  readonly certificate: string;
}

/** Keeps connections open to each worker, pinned to the certificate that it registered. */
export class WorkerConnections {
  readonly #entries = new Map<string, Entry>();

  /** The connections to this worker; new ones when it came back elsewhere or with another certificate. */
  agentFor(worker: WorkerAddress): Agent {
    const known = this.#entries.get(worker.worker_id);
    if (known?.url === worker.url && known.certificate === worker.certificate) return known.agent;
    this.#retire(worker.worker_id);
    if (this.#entries.size >= MOST_WORKERS) this.#retire(this.#entries.keys().next().value);
    const agent = createPinnedAgent(worker.certificate);
    this.#entries.set(worker.worker_id, {
      agent,
      url: worker.url,
      certificate: worker.certificate,
    });
    return agent;
  }

  /** Breaks every connection. */
  async close(): Promise<void> {
    const agents = [...this.#entries.values()].map((entry) => entry.agent);
    this.#entries.clear();
    await Promise.all(agents.map((agent) => agent.destroy()));
  }

  /** Requests that still run on it come to their end. */
  #retire(workerId: string | undefined): void {
    if (workerId === undefined) return;
    const entry = this.#entries.get(workerId);
    this.#entries.delete(workerId);
    entry?.agent.close().catch(() => undefined);
  }
}

function createPinnedAgent(certificate: string): Agent {
  return new Agent({
    connections: MOST_CONNECTIONS_PER_WORKER,
    connect: { timeout: CONNECT_TIMEOUT_MS, ...pinCertificate(certificate) },
  });
}
