import type { Egress } from '@svc/egress';
import type { AgentLogs } from '../agents/logs/agent-logs.ts';
import type { AgentTimeouts } from '../agents/timeouts.ts';
import type { Clock } from '../clock.ts';
import type { SessionApi } from '../control-plane/session-api.ts';
import type { LlmAccounts } from '../gateway/index.ts';
import type { WorkerLogger } from '../logger.ts';
import type { SessionMetrics } from './metrics.ts';
import type { SessionRegistry } from './registry.ts';

/** What all agents of a worker work with. */
export interface AgentServices {
  readonly api: SessionApi;
  readonly accounts: LlmAccounts;
  readonly egress: Pick<Egress, 'request'>;
  readonly sessions: SessionRegistry;
  readonly metrics: SessionMetrics;
  readonly logs: AgentLogs;
  readonly clock: Clock;
  readonly logger: WorkerLogger;
  readonly times: AgentTimeouts;
  /** Where journals are kept. */
  readonly directory: string;
  readonly onFault: (error: unknown, what: string) => void;
}
