import {
  type AppJson,
  type CatalogueEntry,
  type CreateSessionRequest,
  findCapabilitySet,
  type SessionCapabilitySet,
} from '@svc/contract';
import { rejectField } from '../reject-field.ts';

/** The default capability set. */
export const DEFAULT_SET = 'default';

/**
 * The app as its agent sees it: the chosen capability set alone. Undefined for an app that neither the request
 * nor the catalogue describes; its agent has every capability.
 * @throws ServiceError `capability_set_unknown`
 */
export function sessionApp(
  { id, set_id: setId = DEFAULT_SET, capability_sets: sets }: CreateSessionRequest['app'],
  catalogue: readonly CatalogueEntry[],
): AppJson | undefined {
  if (sets !== undefined) {
    const set = findCapabilitySet(sets, setId);
    if (set === undefined) rejectField('capability_set_unknown', '/app/set_id');
    return appOf(id, id, setId, set);
  }
  const entry = catalogue.find((candidate) => candidate.app_id === id);
  if (entry === undefined) return undefined;
  const set = entry.capability_sets.find((candidate) => candidate.set_id === setId);
  if (set === undefined) rejectField('capability_set_unknown', '/app/set_id');
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
