export { type AtomicWriteOptions, writeFileAtomic } from './atomic-write.ts';
export { type Deadline, openDeadline, withDeadline } from './deadline.ts';
export { type FileLock, FileLockedError, lockFile } from './file-lock.ts';
export { identityOf, isAlive, type ProcessIdentity } from './identity.ts';
export { type BackoffOptions, backoffMs, type RetryOptions, retry } from './retry.ts';
export { SHUTDOWN_PHASES, Shutdown, type ShutdownPhase, type ShutdownTask } from './shutdown.ts';
export { SingleFlight } from './single-flight.ts';
