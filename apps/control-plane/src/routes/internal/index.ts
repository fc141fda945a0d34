import type { Route } from '../../services.ts';
import { agentSecrets } from './agent-secrets.ts';
import { workerEvents } from './events.ts';
import { workerHeartbeat } from './heartbeat.ts';
import { receiveSessionFiles } from './receive-session-files.ts';
import { registerWorker } from './register.ts';
import { sendSessionFiles } from './send-session-files.ts';
import { sessionRoute } from './session-route.ts';
import { sessionState } from './session-state.ts';
import { sessionTurns } from './session-turns.ts';

export const internalRoutes: readonly Route[] = [
  registerWorker,
  workerHeartbeat,
  workerEvents,
  agentSecrets,
  sessionRoute,
  sessionState,
  sessionTurns,
  receiveSessionFiles,
  sendSessionFiles,
];
