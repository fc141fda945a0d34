import type { PlacedAgent } from '@svc/contract';
import type { StoredSecrets } from './stored-secrets.ts';

/** An agent for a sandbox, and what it is run with. */
export interface AgentOnSandbox {
  readonly placed: PlacedAgent;
  readonly secrets: StoredSecrets;
}
