import type { Route } from '../../services.ts';
import { agentLog } from './agent-log.ts';
import { agentSecrets } from './agent-secrets.ts';
import { chunkDownloads } from './chunk-downloads.ts';
import { chunkSecret } from './chunk-secret.ts';
import { chunkUploads } from './chunk-uploads.ts';
import { chunksMissing } from './chunks-missing.ts';
import { chunksUploaded } from './chunks-uploaded.ts';
import { enrolComponent, ownComponent } from './components.ts';
import { earlierSessionFiles } from './earlier-session-files.ts';
import { workerEvents } from './events.ts';
import { workerHeartbeat } from './heartbeat.ts';
import { imageDownloads } from './images/downloads.ts';
import { locateImage } from './images/locate.ts';
import { controlPlaneKeys } from './keys.ts';
import { registerWorker } from './register.ts';
import { renewLease } from './renew-lease.ts';
import { removeRuntimeHost, reportRuntimeHost } from './runtime-hosts.ts';
import { sessionFrameNumbers } from './session-frame-numbers.ts';
import { recoverSession, sessionRoute } from './session-route.ts';
import { sessionState } from './session-state.ts';
import { sessionTurns } from './session-turns.ts';
import { reportUsage } from './usage.ts';
import { mountedWorkspaceRoutes } from './workspace/index.ts';

export const internalRoutes: readonly Route[] = [
  controlPlaneKeys,
  enrolComponent,
  ownComponent,
  registerWorker,
  workerHeartbeat,
  renewLease,
  workerEvents,
  reportUsage,
  agentSecrets,
  agentLog,
  reportRuntimeHost,
  removeRuntimeHost,
  sessionRoute,
  recoverSession,
  sessionState,
  sessionFrameNumbers,
  sessionTurns,
  chunkSecret,
  chunksMissing,
  chunkUploads,
  chunksUploaded,
  chunkDownloads,
  earlierSessionFiles,
  locateImage,
  imageDownloads,
  ...mountedWorkspaceRoutes,
];
