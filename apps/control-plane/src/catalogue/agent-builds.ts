import {
  AGENTS,
  type Agent,
  type AgentVersions,
  isSessionTemplate,
  ServiceError,
  type WorkerTemplate,
} from '@svc/contract';
import type { Store } from '@svc/store';
import { isUnreachable } from '../workers/reachability.ts';

/** A build that a session needs; without a version, any. */
interface WantedBuild {
  readonly kind: Agent;
  readonly version: string | undefined;
  readonly template: string;
  /** JSON pointer to the field of the request that wants it. */
  readonly path: string;
}

/** The builds of agents that the images of the reachable workers carry, as their heartbeats report them. */
export class AgentBuilds {
  readonly #store: Pick<Store, 'workers'>;

  constructor(store: Pick<Store, 'workers'>) {
    this.#store = store;
  }

  /** The builds of each agent in the templates of sessions, oldest first. */
  async versions(): Promise<AgentVersions> {
    const templates = (await this.#templates()).filter(({ template }) =>
      isSessionTemplate(template),
    );
    const entries = AGENTS.map((kind) => [kind, versionsIn(templates, kind)] as const);
    return Object.fromEntries(entries) as Record<Agent, string[]>;
  }

  /**
   * Checks that an image of the template carries the wanted build. Without a worker that has the template, placement
   * gives the reason. @throws ServiceError `agent_version_unavailable`
   */
  async check({ kind, version, template, path }: WantedBuild): Promise<void> {
    if (version === undefined) return;
    const offered = (await this.#templates()).filter((offer) => offer.template === template);
    const versions = versionsIn(offered, kind);
    if (offered.length === 0 || versions.includes(version)) return;
    const others = versions.length === 0 ? 'none' : versions.join(', ');
    const message = `No image of ${template} carries ${kind} ${JSON.stringify(version)}; available: ${others}.`;
    throw new ServiceError('agent_version_unavailable', message, {
      errors: [{ path, message: 'is not available' }],
    });
  }

  async #templates(): Promise<WorkerTemplate[]> {
    const workers = await this.#store.workers.list();
    return workers.filter((worker) => !isUnreachable(worker)).flatMap(({ templates }) => templates);
  }
}

function versionsIn(templates: readonly WorkerTemplate[], kind: Agent): string[] {
  const builds = templates.flatMap(({ agents = [] }) => agents);
  const versions = new Set(builds.filter((build) => build.kind === kind).map((one) => one.version));
  return [...versions].sort((one, other) => one.localeCompare(other, 'en', { numeric: true }));
}
