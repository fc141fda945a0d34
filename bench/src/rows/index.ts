import type { Row } from '../measure/row.ts';
import { authenticatedRequest } from './authenticated-request.ts';
import { browserPage } from './browser-page.ts';
import { createBurst } from './create-burst.ts';
import { createEmptyPool, createFromPool } from './create-one.ts';
import { execWarm } from './exec-warm.ts';
import { fileTransfer } from './file-transfer.ts';
import { firstDelta } from './first-delta.ts';
import { fleet } from './fleet.ts';
import { gatewayStream } from './gateway-stream.ts';
import { idleSessions } from './idle-sessions.ts';
import { manyDesktops, manySandboxes } from './many-sandboxes.ts';
import { metering } from './metering.ts';
import { portPage } from './port-page.ts';
import { readBundle } from './read-bundle.ts';
import { readSandbox } from './read-sandbox.ts';
import { sessionFrames } from './session-frames.ts';
import { sessionReady } from './session-ready.ts';
import { sessionResume } from './session-resume.ts';
import { templateCreateEmptyPool, templateCreateFromPool, templateMemory } from './templates.ts';
import { turnCommitBytes } from './turn-commit-bytes.ts';
import { usageYear } from './usage-year.ts';
import { workspace } from './workspace.ts';
import { wrongCodes } from './wrong-codes.ts';

/** All rows, in the order of the table. */
export const ROWS: readonly Row[] = [
  createEmptyPool,
  createFromPool,
  execWarm,
  fileTransfer,
  portPage,
  readSandbox,
  authenticatedRequest,
  readBundle,
  wrongCodes,
  usageYear,
  metering,
  sessionReady,
  sessionResume,
  turnCommitBytes,
  workspace,
  firstDelta,
  sessionFrames,
  gatewayStream,
  idleSessions,
  createBurst,
  manySandboxes,
  templateCreateEmptyPool,
  templateCreateFromPool,
  templateMemory,
  manyDesktops,
  browserPage,
  fleet,
];
