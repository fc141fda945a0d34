import { pinCertificate } from '@svc/service-kit/tls';
import { Agent } from 'undici';
import type { WorkerAddress } from './worker-address.ts';

const MOST_WORKERS = 1024;
/** Each running command or transfer holds a connection; further callers queue. */
const MOST_CONNECTIONS_PER_WORKER = 1024;
const CONNECT_TIMEOUT_MS = 5_000;

interface Entry {
  readonly agent: Agent;
  readonly url: string;
  readonly certificate: string;
}

/** Keeps a connection pool per worker, pinned to the certificate that the worker registered. */
export class WorkerConnections {
  readonly #entries = new Map<string, Entry>();

  /** The pool of this worker; a new one after the worker registered another address or certificate. */
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

  /** Cuts every connection. */
  async close(): Promise<void> {
    const agents = [...this.#entries.values()].map((entry) => entry.agent);
    this.#entries.clear();
    await Promise.all(agents.map((agent) => agent.destroy()));
  }

  /** Closes a pool once its running requests have ended. */
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
