import type { FastifyBaseLogger } from 'fastify';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { CreditGate } from '../billing/credit-gate.ts';
import type { LostWorkers } from '../reconcile/lost-workers.ts';
import type { SandboxDeleter } from '../sandboxes/delete.ts';
import type { ConfigUpdates } from './config-updates.ts';
import { SessionCreator, type SessionParts } from './create.ts';
import { EarlierFiles } from './files/earlier-files.ts';
import {
  createSessionChunks,
  type SessionChunks,
  type SessionChunksParts,
} from './files/session-chunks.ts';
import { SessionReader } from './read.ts';
import { SessionRecoverer } from './recover.ts';
import { SessionRestarter } from './restart.ts';
import { SessionResumer } from './resume.ts';
import { SessionRouter, type SessionRouterParts } from './route.ts';
import { SessionHistory } from './session-history.ts';
import { SessionStopper } from './stop.ts';
import { TranscriptChunks } from './transcripts/transcript-chunks.ts';
import { TurnPacker } from './transcripts/turn-packer.ts';

/** The operations on sessions. */
export interface Sessions
  extends Pick<SessionCreator, 'create'>,
    Pick<SessionResumer, 'resume'>,
    Pick<SessionRecoverer, 'recover'>,
    Pick<SessionReader, 'get' | 'list'>,
    Pick<SessionRouter, 'route'>,
    Pick<SessionStopper, 'delete'> {
  /** Turns, for the workers that run them. */
  readonly history: SessionHistory;
  /** Working files, for the workers that run the sessions. */
  readonly chunks: SessionChunks;
  readonly transcripts: TranscriptChunks;
  readonly earlierFiles: EarlierFiles;
  readonly configUpdates: ConfigUpdates;
}

export interface SessionsParts
  extends SessionParts,
    Pick<SessionChunksParts, 'objects'>,
    Pick<SessionRouterParts, 'tokens' | 'mintHopToken'> {
  readonly tenantKeys: SessionChunksParts['keys'];
  readonly deleter: SandboxDeleter;
  readonly audit: AuditTrail;
  readonly configUpdates: ConfigUpdates;
  readonly credit: CreditGate;
  readonly lostWorkers: LostWorkers;
  readonly logger: Pick<FastifyBaseLogger, 'warn'>;
}

export function createSessions(parts: SessionsParts): Sessions {
  const { store, deleter, configUpdates, objects, tenantKeys, logger } = parts;
  const transcripts = new TranscriptChunks({ store, objects: objects.store, keys: tenantKeys });
  const packer = new TurnPacker({ chunks: transcripts, logger });
  const stopper = new SessionStopper(store, deleter);
  const creator = new SessionCreator(parts);
  const restarter = new SessionRestarter({ ...parts, transcripts });
  const resumer = new SessionResumer({ ...parts, restarter, stopper });
  const recoverer = new SessionRecoverer({ ...parts, restarter });
  const reader = new SessionReader(store);
  const router = new SessionRouter(parts);
  return {
    create: (...call) => creator.create(...call),
    resume: (...call) => resumer.resume(...call),
    recover: (...call) => recoverer.recover(...call),
    get: (...call) => reader.get(...call),
    list: (...call) => reader.list(...call),
    route: (...call) => router.route(...call),
    delete: (...call) => stopper.delete(...call),
    history: new SessionHistory({ store, transcripts, packer }),
    chunks: createSessionChunks({ store, objects, keys: tenantKeys }),
    transcripts,
    earlierFiles: new EarlierFiles(store),
    configUpdates,
  };
}
