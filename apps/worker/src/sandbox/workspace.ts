/** The workspace of a sandbox, as seen by the sandbox's lifecycle. */
export interface MountedWorkspace {
  /**
   * Writes the workspace into the VM. Nobody may use the VM before.
   * @throws ServiceError `workspace_unavailable`, `workspace_too_large`; the reason of the signal
   */
  load(signal: AbortSignal): Promise<void>;
  /** Saves regularly from now on. The workspace has been loaded, maybe by an earlier worker process. */
  start(): void;
  /** Saves what has changed, before a pause; bounded in time. @throws ServiceError `workspace_unavailable` */
  beforePause(): Promise<void>;
  /** Saves what has changed, before the VM is destroyed. Never rejects; bounded in time. May be called again. */
  finish(): Promise<void>;
  /** Saves what has changed and leaves everything in place for the next worker process. Never rejects; bounded in time. */
  release(): Promise<void>;
}
