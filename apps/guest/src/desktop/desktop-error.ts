/** An operation on the desktop that failed. The message is for the agent or client that asked for it. */
export class DesktopError extends Error {
  override readonly name = 'DesktopError';
}
