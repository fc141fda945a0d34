import {
  type AppJson,
  type CatalogueEntry,
  type CreateSessionRequest,
  findCapabilitySet,
  type SessionCapabilitySet,
} from '@svc/contract';
import { refuse } from '../refuse.ts';

/** The set that a session takes when it names none. */
export const DEFAULT_SET = 'default';

/**
 * What the agent is told of its app: the chosen capability set alone. Undefined, which leaves the agent all it
 * can do, for an app that neither the request nor the catalogue describes.
 * @throws ServiceError `capability_set_unknown`
 */
export function sessionApp(
  { id, set_id: setId = DEFAULT_SET, capability_sets: sets }: CreateSessionRequest['app'],
  catalogue: readonly CatalogueEntry[],
): AppJson | undefined {
  if (sets !== undefined) {
    const set = findCapabilitySet(sets, setId);
    if (set === undefined) refuse('capability_set_unknown', '/app/set_id');
    return appOf(id, id, setId, set);
  }
  const entry = catalogue.find((candidate) => candidate.app_id === id);
  if (entry === undefined) return undefined;
  const set = entry.capability_sets.find((candidate) => candidate.set_id === setId);
  if (set === undefined) refuse('capability_set_unknown', '/app/set_id');
  return appOf(entry.name, id, setId, set);
}

function appOf(name: string, agent: string, setId: string, set: SessionCapabilitySet): AppJson {
  const { tools } = set;
  const single = { name: agent, ...(tools === undefined ? {} : { tools }) };
  return {
    name,
    capability_sets: [{ name: set.name ?? setId, agents: set.agents ?? [single] }],
  };
}
