export {
  type AtomicWriteOptions,
  removeUnfinishedWrites,
  writeFileAtomic,
} from './atomic-write.ts';
export { type DrainTimes, NO_DRAIN } from './drain-times.ts';
export { type FileLock, FileLockedError, lockFile } from './file-lock.ts';
export { countBuffersAsHeap } from './garbage-collection.ts';
export { identityOf, isAlive, type ProcessIdentity, readBootId } from './identity.ts';
export { INTERRUPTS, interruptSignal } from './interrupts.ts';
export { processIds, signalProcess } from './processes.ts';
export { ProgramError, runProgram } from './run-program.ts';
export { SHUTDOWN_PHASES, Shutdown, type ShutdownPhase, type ShutdownTask } from './shutdown.ts';
