import type { SandboxState } from '@svc/contract';

/** The states in which a sandbox can be used: any use of a paused one makes its worker resume it. */
export const USABLE: readonly SandboxState[] = ['running', 'paused'];
