import type { Route } from '../../services.ts';
import { workerEvents } from './events.ts';
import { workerHeartbeat } from './heartbeat.ts';
import { registerWorker } from './register.ts';

export const internalRoutes: readonly Route[] = [registerWorker, workerHeartbeat, workerEvents];
