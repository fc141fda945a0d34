import type { AgentInput, PlacedAgent } from '@svc/contract';
import type { StoredSecrets } from './stored-secrets.ts';

/** An agent for a sandbox, with its input and its secrets. */
export interface AgentPlacement {
  readonly placed: PlacedAgent;
  readonly input: AgentInput;
  readonly secrets: StoredSecrets;
}
